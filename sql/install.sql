-- install: the whole schema as it is now, in order of dependency, for psql -1.
-- What users run are the migrations; this is what they add up to.
\ir roles.sql
\ir schema.sql

\ir types/conversation_record.sql
\ir types/message_record.sql
\ir types/parsed_message.sql
\ir types/retention_record.sql
\ir types/purge_record.sql
\ir types/policy_record.sql
\ir types/context_record.sql
\ir types/summary_record.sql
\ir types/search_record.sql
\ir types/context_item.sql
\ir types/group_member.sql
\ir types/render_item.sql
\ir types/render_block.sql

\ir functions/identity/_fail.sql
\ir functions/identity/_size.sql
\ir functions/identity/_uuid_v7.sql
\ir functions/identity/version.sql

\ir tables/schema_migration.sql
\ir tables/tenant_login.sql
\ir tables/prompt.sql
\ir tables/conversation.sql
\ir tables/message.sql
\ir tables/message_revision.sql
\ir tables/idempotency_key.sql
\ir tables/summary.sql
\ir tables/context_policy.sql
\ir tables/tombstone.sql
\ir tables/retention_policy.sql
\ir tables/purge_run.sql
\ir tables/audit.sql

\ir functions/identity/_claim.sql
\ir functions/identity/current_tenant_id.sql
\ir functions/identity/current_user_id.sql
\ir functions/identity/_require_tenant.sql
\ir functions/identity/set_context.sql

\ir policies/schema_migration.sql
\ir policies/tenant_login.sql
\ir policies/prompt.sql
\ir policies/conversation.sql
\ir policies/message.sql
\ir policies/message_revision.sql
\ir policies/idempotency_key.sql
\ir policies/summary.sql
\ir policies/context_policy.sql
\ir policies/tombstone.sql
\ir policies/retention_policy.sql
\ir policies/purge_run.sql
\ir policies/audit.sql

-- Definer functions belong to convo_search, which may create in the schema for this.
grant create on schema convo_private to convo_search;
set local role convo_search;
\ir functions/conversation/_has_tombstone.sql
\ir functions/retention/_audit.sql
\ir functions/retention/_mark_hold.sql
set local role convo_owner;
revoke create on schema convo_private from convo_search;

\ir functions/search/_search_text.sql
\ir functions/search/_search_tokens.sql
\ir functions/search/_search_words.sql
\ir functions/search/_search_terms.sql
\ir functions/search/_search_candidates.sql
\ir functions/search/_search_patterns.sql
\ir functions/search/_search_snippet.sql
\ir functions/search/search_messages.sql
\ir functions/search/_require_vector.sql
\ir functions/search/store_embedding.sql
\ir functions/search/claim_embeddings.sql
\ir functions/search/search_similar.sql
\ir functions/search/_fused_candidates.sql
\ir functions/search/search_hybrid.sql
\ir functions/search/_recall_messages.sql

\ir functions/conversation/_store_prompt.sql
\ir functions/conversation/_collect_prompt.sql
\ir functions/conversation/_fail_not_found.sql
\ir functions/conversation/_lock_conversation.sql
\ir functions/conversation/create_conversation.sql
\ir functions/conversation/get_conversation.sql
\ir functions/conversation/list_conversations.sql
\ir functions/conversation/update_conversation.sql
\ir functions/conversation/archive_conversation.sql
\ir functions/conversation/unarchive_conversation.sql
\ir functions/conversation/delete_conversation.sql
\ir functions/conversation/fork_conversation.sql
\ir functions/conversation/transfer_conversation.sql

\ir functions/message/estimate_tokens.sql
\ir functions/message/_is_blank.sql
\ir functions/message/_message_record.sql
\ir functions/message/_readable.sql
\ir functions/message/_url_media.sql
\ir functions/message/_openai_content_parts.sql
\ir functions/message/_openai_parts.sql
\ir functions/message/_openai_responses_parts.sql
\ir functions/message/_anthropic_source.sql
\ir functions/message/_anthropic_parts.sql
\ir functions/message/_gemini_member.sql
\ir functions/message/_gemini_media.sql
\ir functions/message/_gemini_response.sql
\ir functions/message/_gemini_parts.sql
\ir functions/message/_openai_text.sql
\ir functions/message/_estimate_openai_parts.sql
\ir functions/message/_read_openai.sql
\ir functions/message/_parts_reason.sql
\ir functions/message/_parsed_message.sql
\ir functions/message/_read_openai_responses.sql
\ir functions/message/_read_anthropic.sql
\ir functions/message/_read_gemini.sql
\ir functions/message/_read_message.sql
\ir functions/message/_read_messages.sql
\ir functions/message/_open_calls.sql
\ir functions/message/_begun_group.sql
\ir functions/message/_group_messages.sql
\ir functions/message/_json_set.sql
\ir functions/message/_json_without.sql
\ir functions/message/_replace_openai_text.sql
\ir functions/message/_replace_responses_text.sql
\ir functions/message/_replace_anthropic_text.sql
\ir functions/message/_replace_gemini_text.sql
\ir functions/message/_replace_text.sql
\ir functions/message/_advance_conversation.sql
\ir functions/message/_find_append.sql
\ir functions/message/_find_message.sql
\ir functions/message/append_message.sql
\ir functions/message/append_messages.sql
\ir functions/message/last_messages.sql
\ir functions/message/list_messages.sql
\ir functions/message/edit_message.sql
\ir functions/message/_set_deleted.sql
\ir functions/message/delete_message.sql
\ir functions/message/restore_message.sql
\ir functions/message/delete_messages.sql
\ir functions/message/message_revisions.sql

\ir functions/context/token_window.sql
\ir functions/context/list_policies.sql
\ir functions/context/get_policy.sql
\ir functions/context/set_policy.sql
\ir functions/context/delete_policy.sql
\ir functions/context/_resolve_policy.sql
\ir functions/context/_judge_group.sql
\ir functions/context/_stepped_budget.sql
\ir functions/context/_scan_groups.sql
\ir functions/context/_context_window.sql
\ir functions/context/_fixed_items.sql
\ir functions/context/_context_items.sql
\ir functions/context/get_context.sql
\ir functions/context/explain_context.sql

\ir functions/render/_hide_escapes.sql
\ir functions/render/_show_escapes.sql
\ir functions/render/_raw_parts.sql
\ir functions/render/_set_raw.sql
\ir functions/render/_payload_parts.sql
\ir functions/render/_carried_part.sql
\ir functions/render/_is_sent.sql
\ir functions/render/_item_blocks.sql
\ir functions/render/_call_id.sql
\ir functions/render/_call_name.sql
\ir functions/render/_answer_call.sql
\ir functions/render/_pair_blocks.sql
\ir functions/render/_render_blocks.sql
\ir functions/render/_result_text.sql
\ir functions/render/_data_url.sql
\ir functions/render/_arguments_object.sql
\ir functions/render/_openai_content.sql
\ir functions/render/_openai_message.sql
\ir functions/render/_render_openai.sql
\ir functions/render/_openai_responses_content.sql
\ir functions/render/_openai_responses_item.sql
\ir functions/render/_render_openai_responses.sql
\ir functions/render/_anthropic_content.sql
\ir functions/render/_anthropic_block.sql
\ir functions/render/_trim_anthropic.sql
\ir functions/render/_gemini_part.sql
\ir functions/render/_turn_message.sql
\ir functions/render/_render_turns.sql
\ir functions/render/_render_anthropic.sql
\ir functions/render/_render_gemini.sql
\ir functions/render/render_context.sql

\ir functions/summary/_newest_user_seq.sql
\ir functions/summary/_rewind_summary.sql
\ir functions/summary/_has_open_call.sql
\ir functions/summary/save_summary.sql

\ir functions/retention/set_retention.sql
\ir functions/retention/_set_hold.sql
\ir functions/retention/hold_conversation.sql
\ir functions/retention/release_conversation.sql
\ir functions/retention/_due_conversations.sql
\ir functions/retention/purge.sql
\ir functions/retention/purge_all.sql

reset role;
