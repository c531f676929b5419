-- _url_media: what a part says about its data: a data URL is taken apart.
-- in: the URL as a JSON string
-- out: {"media_type", "data"} for a data URL in base64, else {"url"}
create function convo._url_media(url jsonb) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    address constant text := _url_media.url #>> '{}';
    comma constant integer := strpos(address, ',');
    head constant text := left(address, greatest(comma - 1, 0));
begin
    if head like 'data:%;base64' then
        return jsonb_build_object(
            'media_type', split_part(substr(head, 6), ';', 1),
            'data', substr(address, comma + 1)
        );
    end if;
    return jsonb_build_object('url', case
        when jsonb_typeof(_url_media.url) = 'string' then _url_media.url
    end);
end
$$;

comment on function convo._url_media(jsonb) is
'A URL as a member of a part, a data URL taken apart.';
revoke execute on function convo._url_media(jsonb) from public;
grant execute on function convo._url_media(jsonb)
to convo_app, convo_service, convo_reader;
