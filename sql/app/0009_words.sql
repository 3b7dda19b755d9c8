-- A comment that named a file of the history before 0001 … 0008 were written anew.

comment on column private.request_codes.asker is 'The network that asked; only the same may try the code or end it.';
