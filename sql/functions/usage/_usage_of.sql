-- _usage_of: a provider's usage as disjoint buckets.
-- OpenAI and Gemini count cached input within the input, Anthropic apart from it. OpenAI
-- and Anthropic count reasoning within the output, Gemini apart from it, and so do others
-- with the API of OpenAI: what the total has beyond input and output is reasoning. A part
-- that is larger than its whole is cut down to it.
-- in: the format, and the usage of any shape, cleaned by _readable
create function convo._usage_of(format text, usage jsonb)
returns convo._usage_buckets
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    u constant jsonb := _usage_of.usage;
    buckets convo._usage_buckets;
    all_input bigint;
    all_output bigint;
    apart bigint;
begin
    buckets.cache_write_5m_tokens := 0;
    buckets.cache_write_1h_tokens := 0;
    if _usage_of.format = 'anthropic' then
        buckets.input_tokens := convo._token_count(u, 'input_tokens');
        buckets.cache_read_tokens := convo._token_count(u, 'cache_read_input_tokens');
        buckets.cache_write_1h_tokens := convo._token_count(
            u, 'cache_creation', 'ephemeral_1h_input_tokens'
        );
        -- the total is older than its parts, which may be missing
        buckets.cache_write_5m_tokens := greatest(
            convo._token_count(u, 'cache_creation', 'ephemeral_5m_input_tokens'),
            convo._token_count(u, 'cache_creation_input_tokens')
                - buckets.cache_write_1h_tokens
        );
        all_output := convo._token_count(u, 'output_tokens');
        buckets.reasoning_tokens := least(all_output, convo._token_count(
            u, 'output_tokens_details', 'thinking_tokens'
        ));
        buckets.output_tokens := all_output - buckets.reasoning_tokens;
        return buckets;
    elsif _usage_of.format = 'gemini' then
        all_input := greatest(
            convo._token_count(u, 'promptTokenCount'),
            convo._token_count(u, 'prompt_token_count')
        );
        buckets.cache_read_tokens := least(all_input, greatest(
            convo._token_count(u, 'cachedContentTokenCount'),
            convo._token_count(u, 'cached_content_token_count')
        ));
        all_input := all_input + greatest(
            convo._token_count(u, 'toolUsePromptTokenCount'),
            convo._token_count(u, 'tool_use_prompt_token_count')
        );
        buckets.reasoning_tokens := greatest(
            convo._token_count(u, 'thoughtsTokenCount'),
            convo._token_count(u, 'thoughts_token_count')
        );
        buckets.output_tokens := greatest(
            convo._token_count(u, 'candidatesTokenCount'),
            convo._token_count(u, 'candidates_token_count')
        );
    else
        all_input := greatest(
            convo._token_count(u, 'prompt_tokens'),
            convo._token_count(u, 'input_tokens')
        );
        all_output := greatest(
            convo._token_count(u, 'completion_tokens'),
            convo._token_count(u, 'output_tokens')
        );
        buckets.cache_read_tokens := least(all_input, greatest(
            convo._token_count(u, 'prompt_tokens_details', 'cached_tokens'),
            convo._token_count(u, 'input_tokens_details', 'cached_tokens')
        ));
        apart := greatest(
            0, convo._token_count(u, 'total_tokens') - all_input - all_output
        );
        buckets.reasoning_tokens := apart + least(all_output, greatest(
            0,
            convo._token_count(u, 'completion_tokens_details', 'reasoning_tokens')
                - apart,
            convo._token_count(u, 'output_tokens_details', 'reasoning_tokens') - apart
        ));
        buckets.output_tokens := all_output + apart - buckets.reasoning_tokens;
        buckets.cache_write_5m_tokens := least(
            all_input - buckets.cache_read_tokens,
            greatest(
                convo._token_count(u, 'prompt_tokens_details', 'cache_write_tokens'),
                convo._token_count(u, 'input_tokens_details', 'cache_write_tokens')
            )
        );
    end if;
    buckets.input_tokens :=
        all_input - buckets.cache_read_tokens - buckets.cache_write_5m_tokens;
    return buckets;
end
$$;

comment on function convo._usage_of(text, jsonb) is
'A provider''s usage as disjoint buckets.';
revoke execute on function convo._usage_of(text, jsonb) from public;
grant execute on function convo._usage_of(text, jsonb) to convo_app, convo_service;
