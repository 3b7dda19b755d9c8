-- Each sign-out and each new password ends the links of identities that the user has begun.
create index if not exists flow_state_linking_target_id_idx on auth.flow_state (linking_target_id)
  where linking_target_id is not null;
