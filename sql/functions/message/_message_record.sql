-- _message_record: a row of table message as the functions give it.
create function convo._message_record(message convo.message)
returns convo.message_record
language sql immutable parallel safe
return row(
    (_message_record.message).seq,
    (_message_record.message).role,
    (_message_record.message).content,
    (_message_record.message).tokens,
    (_message_record.message).is_estimated,
    (_message_record.message).created_at,
    (_message_record.message).revision,
    (_message_record.message).model,
    (_message_record.message).payload,
    (_message_record.message).format,
    (_message_record.message).metadata,
    (_message_record.message).group_seq,
    (_message_record.message).deleted_at
)::convo.message_record;

comment on function convo._message_record(convo.message) is
'A row of table message as the functions give it.';
revoke execute on function convo._message_record(convo.message) from public;
grant execute on function convo._message_record(convo.message)
to convo_app, convo_service, convo_reader;
