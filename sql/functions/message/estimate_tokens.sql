-- estimate_tokens: about how many tokens (o200k, GPT-4o and later) a text has.
-- in: any text; only the text counts, not its role or other overhead
-- out: null for null, 0 for the empty text, else at least 1
-- errors: none
-- since: 0.1.0
create function convo.estimate_tokens(content text) returns integer
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
-- The estimate is a weighted sum of counts. The weights are thousandths of a token,
-- fitted by bench/tokens/fit.py; docs/tokens.md has the errors. With integers, explicit
-- character ranges and collation C every server gives the same number for a text.
declare
    sample text collate "C" := estimate_tokens.content;
    sample_bytes integer;
    characters integer;
    lower_bits bigint;
    letters bigint;
    capitals bigint;
    signs bigint := 0;
    millis bigint;
begin
    if octet_length(estimate_tokens.content) = 0 then
        return 0;
    end if;

    -- A text over 32 kB is judged by 32 slices of 1 kB, evenly spread and cut between
    -- characters (bytes 128 to 191 continue one), so that its cost stays small. Slices
    -- are 4 bytes short of 1024: the last one then can't run past the end.
    if octet_length(estimate_tokens.content) > 32768 then
        declare
            bytes constant bytea := convert_to(estimate_tokens.content, 'UTF8');
            first_byte integer;
            end_byte integer;
        begin
            sample := '';
            for part in 0 .. 31 loop
                first_byte := part * (octet_length(bytes) / 32);
                end_byte := first_byte + 1020;
                while get_byte(bytes, first_byte) between 128 and 191 loop
                    first_byte := first_byte + 1;
                end loop;
                while get_byte(bytes, end_byte) between 128 and 191 loop
                    end_byte := end_byte + 1;
                end loop;
                sample := sample || convert_from(
                    substr(bytes, first_byte + 1, end_byte - first_byte), 'UTF8'
                );
            end loop;
        end;
    end if;
    sample_bytes := octet_length(sample);

    -- Indentation, ruled lines and bold type are few tokens: two spaces, dashes or
    -- asterisks count as one.
    sample := replace(replace(replace(sample, '  ', ' '), '--', '-'), '**', '*');
    characters := length(sample);
    millis := 159 * characters;

    if octet_length(sample) > characters then
        declare
            -- Characters outside ASCII, taken out script by script, and what each adds.
            scripts constant text[] collate "C" := array[
                E'[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]+',  -- Chinese to Korean
                E'[\u0456\u0457\u0454\u0491\u0406\u0407\u0404\u0490]+', -- Ukrainian
                E'[\u0400-\u052f]+',                            -- Cyrillic
                E'[\u0590-\u05ff\u0e00-\u0e7f]+',               -- Hebrew, Thai
                -- Greek, Armenian, Arabic, India's scripts, Burmese, Georgian, Khmer
                E'[\u0370-\u03ff\u0530-\u0dff\u1000-\u10ff\u1780-\u17ff]+',
                E'[\u00c0-\u024f\u1e00-\u1eff]+',               -- Latin with marks
                E'[\u0300-\u036f]+'                             -- marks on their own
            ];
            weights constant integer[] := array[602, 1245, 94, 274, 188, 477, 1910];
            rest text collate "C";
            others text collate "C";
        begin
            rest := regexp_replace(sample, E'[\u0001-\u007f]+', '', 'g');
            signs := -octet_length(rest);
            for script in 1 .. cardinality(scripts) loop
                others := regexp_replace(rest, scripts[script], '', 'g');
                millis := millis + weights[script] * (length(rest) - length(others));
                rest := others;
            end loop;
            -- Emoji, typographic signs and further scripts, by the byte.
            millis := millis + 483 * octet_length(rest);
        end;
    end if;

    -- The cheapest way to count ASCII letters: lower() sets one bit of each capital,
    -- upper() clears one of each small letter. Signs are digits, punctuation and line
    -- ends.
    lower_bits := bit_count(convert_to(lower(sample), 'UTF8'));
    capitals := lower_bits - bit_count(convert_to(sample, 'UTF8'));
    letters := lower_bits - bit_count(convert_to(upper(sample), 'UTF8'));
    signs := signs + octet_length(replace(sample, ' ', '')) - letters;

    -- k, z and a are rarer in English than in other languages in Latin script, whose
    -- words are more tokens.
    millis := millis + 206 * capitals + 409 * signs
        + 582 * (octet_length(sample) - octet_length(replace(sample, 'k', '')))
        + 1559 * (octet_length(sample) - octet_length(replace(sample, 'z', '')))
        + 312 * (octet_length(sample) - octet_length(replace(sample, 'a', '')));

    millis := millis * octet_length(estimate_tokens.content) / sample_bytes;
    return greatest(1, (millis + 500) / 1000);
end
$$;

comment on function convo.estimate_tokens(text) is
'About how many tokens (o200k) a text has; null for null, 0 for the empty text.';
revoke execute on function convo.estimate_tokens(text) from public;
grant execute on function convo.estimate_tokens(text)
to convo_app, convo_service, convo_reader, convo_maintainer;
