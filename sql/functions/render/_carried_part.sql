-- _carried_part: a part as a format can carry it: media that it can't are a short text.
-- in: the part, the format it is from, the one it goes to, and where it stands there
--     (system, user, assistant, result)
create function convo._carried_part(part jsonb, source text, format text, place text)
returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    kind constant text := _carried_part.part ->> 'kind';
    media_type constant text := coalesce(_carried_part.part ->> 'media_type', '');
    has_data constant boolean := _carried_part.part ? 'data';
    has_url constant boolean := _carried_part.part ->> 'url' ~ '^https?://';
    is_image constant boolean := kind = 'image' and (
        has_url
        or has_data
        and media_type in ('image/png', 'image/jpeg', 'image/gif', 'image/webp')
    );
    is_pdf constant boolean :=
        kind = 'file' and has_data and media_type = 'application/pdf';
    -- An id of a file means something to its maker only.
    has_id constant boolean := _carried_part.part ? 'id'
        and _carried_part.source in ('openai', 'openai_responses');
begin
    if kind = 'result' then
        return jsonb_set(_carried_part.part, '{parts}', (
            select coalesce(jsonb_agg(
                convo._carried_part(
                    p.part, _carried_part.source, _carried_part.format, 'result'
                ) order by p.n
            ), '[]')
            from jsonb_array_elements(_carried_part.part -> 'parts')
                with ordinality as p (part, n)
            where p.part ->> 'kind' in ('image', 'file', 'audio')
                or p.part ->> 'kind' = 'text' and not convo._is_blank(p.part ->> 'text')
        ));
    elsif kind not in ('image', 'file', 'audio')
        or _carried_part.place in ('user', 'result') and (case
            when _carried_part.format = 'openai' then _carried_part.place = 'user' and (
                is_image or is_pdf or kind = 'file' and has_id
                or media_type in ('audio/wav', 'audio/mp3', 'audio/mpeg') and has_data
            )
            when _carried_part.format = 'openai_responses'
                then is_image or is_pdf or kind <> 'audio' and has_id
                or kind = 'file' and has_url
            when _carried_part.format = 'anthropic'
                then is_image or is_pdf or kind = 'file' and has_url
            else _carried_part.place = 'user'
                and (has_data and media_type <> '' or _carried_part.part ? 'url')
        end)
    then
        return _carried_part.part;
    end if;
    return jsonb_build_object('kind', 'text', 'text', '[' || concat_ws(
        ' ', kind, _carried_part.part ->> 'name'
    ) || ']');
end
$$;

comment on function convo._carried_part(jsonb, text, text, text) is
'A part as a format can carry it: media that it can''t are a short text.';
revoke execute on function convo._carried_part(jsonb, text, text, text) from public;
grant execute on function convo._carried_part(jsonb, text, text, text)
to convo_app, convo_service, convo_reader;
