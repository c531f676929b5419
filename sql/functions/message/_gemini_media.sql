-- _gemini_media: the media of a Gemini part.
-- in: inlineData or fileData
create function convo._gemini_media(source jsonb) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    media_type constant jsonb := convo._gemini_member(_gemini_media.source, 'mimeType');
    main_type constant text := split_part(media_type #>> '{}', '/', 1);
begin
    return jsonb_build_object(
        'kind', case
            when main_type in ('image', 'audio') then main_type
            else 'file'
        end,
        'name', convo._gemini_member(_gemini_media.source, 'displayName'),
        'media_type', media_type,
        'data', _gemini_media.source -> 'data',
        'url', convo._gemini_member(_gemini_media.source, 'fileUri')
    );
end
$$;

comment on function convo._gemini_media(jsonb) is
'The media of a Gemini part.';
revoke execute on function convo._gemini_media(jsonb) from public;
grant execute on function convo._gemini_media(jsonb)
to convo_app, convo_service, convo_reader;
