-- _data_url: the URL of a part, made of its data if it has none.
create function convo._data_url(part jsonb) returns text
language sql immutable parallel safe
return coalesce(
    _data_url.part ->> 'url',
    'data:' || (_data_url.part ->> 'media_type') || ';base64,'
    || (_data_url.part ->> 'data')
);

comment on function convo._data_url(jsonb) is
'The URL of a part, made of its data if it has none.';
revoke execute on function convo._data_url(jsonb) from public;
grant execute on function convo._data_url(jsonb)
to convo_app, convo_service, convo_reader;
