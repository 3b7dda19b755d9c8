-- What is missing is asked from a checklist as well: the function takes one more argument.

drop function if exists public.request_more_info(text, text, text);
