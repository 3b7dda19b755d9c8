-- The schema `auth` as the 70 migrations of Supabase Auth leave it, in the shape in which pg_dump writes one: the part that
-- comes before the rows. `schema_migrations` is Supabase Auth's own: 14 characters.

SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;

CREATE SCHEMA auth;
ALTER SCHEMA auth OWNER TO supabase_auth_admin;

CREATE TYPE auth.aal_level AS ENUM ('aal1', 'aal2', 'aal3');
ALTER TYPE auth.aal_level OWNER TO supabase_auth_admin;
CREATE TYPE auth.code_challenge_method AS ENUM ('s256', 'plain');
ALTER TYPE auth.code_challenge_method OWNER TO supabase_auth_admin;
CREATE TYPE auth.factor_status AS ENUM ('unverified', 'verified');
ALTER TYPE auth.factor_status OWNER TO supabase_auth_admin;
CREATE TYPE auth.factor_type AS ENUM ('totp', 'webauthn', 'phone');
ALTER TYPE auth.factor_type OWNER TO supabase_auth_admin;
CREATE TYPE auth.oauth_authorization_status AS ENUM ('pending', 'approved', 'denied', 'expired');
ALTER TYPE auth.oauth_authorization_status OWNER TO supabase_auth_admin;
CREATE TYPE auth.oauth_client_type AS ENUM ('public', 'confidential');
ALTER TYPE auth.oauth_client_type OWNER TO supabase_auth_admin;
CREATE TYPE auth.oauth_registration_type AS ENUM ('dynamic', 'manual');
ALTER TYPE auth.oauth_registration_type OWNER TO supabase_auth_admin;
CREATE TYPE auth.oauth_response_type AS ENUM ('code');
ALTER TYPE auth.oauth_response_type OWNER TO supabase_auth_admin;
CREATE TYPE auth.one_time_token_type AS ENUM (
    'confirmation_token', 'reauthentication_token', 'recovery_token', 'email_change_token_new', 'email_change_token_current',
    'phone_change_token'
);
ALTER TYPE auth.one_time_token_type OWNER TO supabase_auth_admin;

CREATE FUNCTION auth.uid() RETURNS uuid LANGUAGE sql STABLE AS $$
  select coalesce(nullif(current_setting('request.jwt.claim.sub', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub')::uuid
$$;
ALTER FUNCTION auth.uid() OWNER TO supabase_auth_admin;
CREATE FUNCTION auth.role() RETURNS text LANGUAGE sql STABLE AS $$
  select coalesce(nullif(current_setting('request.jwt.claim.role', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'role')::text
$$;
ALTER FUNCTION auth.role() OWNER TO supabase_auth_admin;
CREATE FUNCTION auth.email() RETURNS text LANGUAGE sql STABLE AS $$
  select coalesce(nullif(current_setting('request.jwt.claim.email', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'email')::text
$$;
ALTER FUNCTION auth.email() OWNER TO supabase_auth_admin;

CREATE TABLE auth.audit_log_entries (
    instance_id uuid, id uuid NOT NULL, payload json, created_at timestamp with time zone,
    ip_address character varying(64) DEFAULT ''::character varying NOT NULL
);
ALTER TABLE auth.audit_log_entries OWNER TO supabase_auth_admin;
CREATE TABLE auth.custom_oauth_providers (
    id uuid DEFAULT gen_random_uuid() NOT NULL, provider_type text NOT NULL, identifier text NOT NULL,
    name text NOT NULL, client_id text NOT NULL, client_secret text NOT NULL,
    acceptable_client_ids text[] DEFAULT '{}'::text[] NOT NULL, scopes text[] DEFAULT '{}'::text[] NOT NULL,
    pkce_enabled boolean DEFAULT true NOT NULL, attribute_mapping jsonb DEFAULT '{}'::jsonb NOT NULL,
    authorization_params jsonb DEFAULT '{}'::jsonb NOT NULL, enabled boolean DEFAULT true NOT NULL,
    email_optional boolean DEFAULT false NOT NULL, issuer text, discovery_url text,
    skip_nonce_check boolean DEFAULT false NOT NULL, cached_discovery jsonb,
    discovery_cached_at timestamp with time zone, authorization_url text, token_url text, userinfo_url text,
    jwks_uri text, created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    custom_claims_allowlist text[] DEFAULT '{}'::text[] NOT NULL,
    CONSTRAINT custom_oauth_providers_authorization_url_https CHECK (((authorization_url IS NULL) OR (authorization_url ~~ 'https://%'::text))),
    CONSTRAINT custom_oauth_providers_authorization_url_length CHECK (((authorization_url IS NULL) OR (char_length(authorization_url) <= 2048))),
    CONSTRAINT custom_oauth_providers_client_id_length CHECK (((char_length(client_id) >= 1) AND (char_length(client_id) <= 512))),
    CONSTRAINT custom_oauth_providers_discovery_url_length CHECK (((discovery_url IS NULL) OR (char_length(discovery_url) <= 2048))),
    CONSTRAINT custom_oauth_providers_identifier_format CHECK ((identifier ~ '^[a-z0-9][a-z0-9:-]{0,48}[a-z0-9]$'::text)),
    CONSTRAINT custom_oauth_providers_issuer_length CHECK (((issuer IS NULL) OR ((char_length(issuer) >= 1) AND (char_length(issuer) <= 2048)))),
    CONSTRAINT custom_oauth_providers_jwks_uri_https CHECK (((jwks_uri IS NULL) OR (jwks_uri ~~ 'https://%'::text))),
    CONSTRAINT custom_oauth_providers_jwks_uri_length CHECK (((jwks_uri IS NULL) OR (char_length(jwks_uri) <= 2048))),
    CONSTRAINT custom_oauth_providers_name_length CHECK (((char_length(name) >= 1) AND (char_length(name) <= 100))),
    CONSTRAINT custom_oauth_providers_oauth2_requires_endpoints CHECK (((provider_type <> 'oauth2'::text) OR ((authorization_url IS NOT NULL) AND (token_url IS NOT NULL) AND (userinfo_url IS NOT NULL)))),
    CONSTRAINT custom_oauth_providers_oidc_discovery_url_https CHECK (((provider_type <> 'oidc'::text) OR (discovery_url IS NULL) OR (discovery_url ~~ 'https://%'::text))),
    CONSTRAINT custom_oauth_providers_oidc_issuer_https CHECK (((provider_type <> 'oidc'::text) OR (issuer IS NULL) OR (issuer ~~ 'https://%'::text))),
    CONSTRAINT custom_oauth_providers_oidc_requires_issuer CHECK (((provider_type <> 'oidc'::text) OR (issuer IS NOT NULL))),
    CONSTRAINT custom_oauth_providers_provider_type_check CHECK ((provider_type = ANY (ARRAY['oauth2'::text, 'oidc'::text]))),
    CONSTRAINT custom_oauth_providers_token_url_https CHECK (((token_url IS NULL) OR (token_url ~~ 'https://%'::text))),
    CONSTRAINT custom_oauth_providers_token_url_length CHECK (((token_url IS NULL) OR (char_length(token_url) <= 2048))),
    CONSTRAINT custom_oauth_providers_userinfo_url_https CHECK (((userinfo_url IS NULL) OR (userinfo_url ~~ 'https://%'::text))),
    CONSTRAINT custom_oauth_providers_userinfo_url_length CHECK (((userinfo_url IS NULL) OR (char_length(userinfo_url) <= 2048)))
);
ALTER TABLE auth.custom_oauth_providers OWNER TO supabase_auth_admin;
CREATE TABLE auth.flow_state (
    id uuid NOT NULL, user_id uuid, auth_code text, code_challenge_method auth.code_challenge_method,
    code_challenge text, provider_type text NOT NULL, provider_access_token text, provider_refresh_token text,
    created_at timestamp with time zone, updated_at timestamp with time zone, authentication_method text NOT NULL,
    auth_code_issued_at timestamp with time zone, invite_token text, referrer text, oauth_client_state_id uuid,
    linking_target_id uuid, email_optional boolean DEFAULT false NOT NULL
);
ALTER TABLE auth.flow_state OWNER TO supabase_auth_admin;
CREATE TABLE auth.identities (
    provider_id text NOT NULL, user_id uuid NOT NULL, identity_data jsonb NOT NULL, provider text NOT NULL,
    last_sign_in_at timestamp with time zone, created_at timestamp with time zone, updated_at timestamp with time zone,
    email text GENERATED ALWAYS AS (lower((identity_data ->> 'email'::text))) STORED,
    id uuid DEFAULT gen_random_uuid() NOT NULL
);
ALTER TABLE auth.identities OWNER TO supabase_auth_admin;
CREATE TABLE auth.instances (
    id uuid NOT NULL, uuid uuid, raw_base_config text, created_at timestamp with time zone,
    updated_at timestamp with time zone
);
ALTER TABLE auth.instances OWNER TO supabase_auth_admin;
CREATE TABLE auth.mfa_amr_claims (
    session_id uuid NOT NULL, created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL, authentication_method text NOT NULL, id uuid NOT NULL
);
ALTER TABLE auth.mfa_amr_claims OWNER TO supabase_auth_admin;
CREATE TABLE auth.mfa_challenges (
    id uuid NOT NULL, factor_id uuid NOT NULL, created_at timestamp with time zone NOT NULL,
    verified_at timestamp with time zone, ip_address inet NOT NULL, otp_code text, web_authn_session_data jsonb
);
ALTER TABLE auth.mfa_challenges OWNER TO supabase_auth_admin;
CREATE TABLE auth.mfa_factors (
    id uuid NOT NULL, user_id uuid NOT NULL, friendly_name text, factor_type auth.factor_type NOT NULL,
    status auth.factor_status NOT NULL, created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL, secret text, phone text, last_challenged_at timestamp with time zone,
    web_authn_credential jsonb, web_authn_aaguid uuid, last_webauthn_challenge_data jsonb
);
ALTER TABLE auth.mfa_factors OWNER TO supabase_auth_admin;
CREATE TABLE auth.oauth_authorizations (
    id uuid NOT NULL, authorization_id text NOT NULL, client_id uuid NOT NULL, user_id uuid, redirect_uri text NOT NULL,
    scope text NOT NULL, state text, resource text, code_challenge text,
    code_challenge_method auth.code_challenge_method,
    response_type auth.oauth_response_type DEFAULT 'code'::auth.oauth_response_type NOT NULL,
    status auth.oauth_authorization_status DEFAULT 'pending'::auth.oauth_authorization_status NOT NULL,
    authorization_code text, created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone DEFAULT (now() + '00:03:00'::interval) NOT NULL,
    approved_at timestamp with time zone, nonce text,
    CONSTRAINT oauth_authorizations_authorization_code_length CHECK ((char_length(authorization_code) <= 255)),
    CONSTRAINT oauth_authorizations_code_challenge_length CHECK ((char_length(code_challenge) <= 128)),
    CONSTRAINT oauth_authorizations_expires_at_future CHECK ((expires_at > created_at)),
    CONSTRAINT oauth_authorizations_nonce_length CHECK ((char_length(nonce) <= 255)),
    CONSTRAINT oauth_authorizations_redirect_uri_length CHECK ((char_length(redirect_uri) <= 2048)),
    CONSTRAINT oauth_authorizations_resource_length CHECK ((char_length(resource) <= 2048)),
    CONSTRAINT oauth_authorizations_scope_length CHECK ((char_length(scope) <= 4096)),
    CONSTRAINT oauth_authorizations_state_length CHECK ((char_length(state) <= 4096))
);
ALTER TABLE auth.oauth_authorizations OWNER TO supabase_auth_admin;
CREATE TABLE auth.oauth_client_states (
    id uuid NOT NULL, provider_type text NOT NULL, code_verifier text, created_at timestamp with time zone NOT NULL
);
ALTER TABLE auth.oauth_client_states OWNER TO supabase_auth_admin;
CREATE TABLE auth.oauth_clients (
    id uuid NOT NULL, client_secret_hash text, registration_type auth.oauth_registration_type NOT NULL,
    redirect_uris text NOT NULL, grant_types text NOT NULL, client_name text, client_uri text, logo_uri text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL, deleted_at timestamp with time zone,
    client_type auth.oauth_client_type DEFAULT 'confidential'::auth.oauth_client_type NOT NULL,
    token_endpoint_auth_method text NOT NULL,
    CONSTRAINT oauth_clients_client_name_length CHECK ((char_length(client_name) <= 1024)),
    CONSTRAINT oauth_clients_client_uri_length CHECK ((char_length(client_uri) <= 2048)),
    CONSTRAINT oauth_clients_logo_uri_length CHECK ((char_length(logo_uri) <= 2048)),
    CONSTRAINT oauth_clients_token_endpoint_auth_method_check CHECK ((token_endpoint_auth_method = ANY (ARRAY['client_secret_basic'::text, 'client_secret_post'::text, 'none'::text])))
);
ALTER TABLE auth.oauth_clients OWNER TO supabase_auth_admin;
CREATE TABLE auth.oauth_consents (
    id uuid NOT NULL, user_id uuid NOT NULL, client_id uuid NOT NULL, scopes text NOT NULL,
    granted_at timestamp with time zone DEFAULT now() NOT NULL, revoked_at timestamp with time zone,
    CONSTRAINT oauth_consents_revoked_after_granted CHECK (((revoked_at IS NULL) OR (revoked_at >= granted_at))),
    CONSTRAINT oauth_consents_scopes_length CHECK ((char_length(scopes) <= 2048)),
    CONSTRAINT oauth_consents_scopes_not_empty CHECK ((char_length(TRIM(BOTH FROM scopes)) > 0))
);
ALTER TABLE auth.oauth_consents OWNER TO supabase_auth_admin;
CREATE TABLE auth.one_time_tokens (
    id uuid NOT NULL, user_id uuid NOT NULL, token_type auth.one_time_token_type NOT NULL, token_hash text NOT NULL,
    relates_to text NOT NULL, created_at timestamp without time zone DEFAULT now() NOT NULL,
    updated_at timestamp without time zone DEFAULT now() NOT NULL,
    CONSTRAINT one_time_tokens_token_hash_check CHECK ((char_length(token_hash) > 0))
);
ALTER TABLE auth.one_time_tokens OWNER TO supabase_auth_admin;
CREATE TABLE auth.refresh_tokens (
    instance_id uuid, id bigint NOT NULL, token character varying(255), user_id character varying(255), revoked boolean,
    created_at timestamp with time zone, updated_at timestamp with time zone, parent character varying(255),
    session_id uuid
);
ALTER TABLE auth.refresh_tokens OWNER TO supabase_auth_admin;
CREATE TABLE auth.saml_providers (
    id uuid NOT NULL, sso_provider_id uuid NOT NULL, entity_id text NOT NULL, metadata_xml text NOT NULL,
    metadata_url text, attribute_mapping jsonb, created_at timestamp with time zone,
    updated_at timestamp with time zone, name_id_format text,
    CONSTRAINT "entity_id not empty" CHECK ((char_length(entity_id) > 0)),
    CONSTRAINT "metadata_url not empty" CHECK (((metadata_url = NULL::text) OR (char_length(metadata_url) > 0))),
    CONSTRAINT "metadata_xml not empty" CHECK ((char_length(metadata_xml) > 0))
);
ALTER TABLE auth.saml_providers OWNER TO supabase_auth_admin;
CREATE TABLE auth.saml_relay_states (
    id uuid NOT NULL, sso_provider_id uuid NOT NULL, request_id text NOT NULL, for_email text, redirect_to text,
    created_at timestamp with time zone, updated_at timestamp with time zone, flow_state_id uuid,
    CONSTRAINT "request_id not empty" CHECK ((char_length(request_id) > 0))
);
ALTER TABLE auth.saml_relay_states OWNER TO supabase_auth_admin;
CREATE TABLE auth.schema_migrations (
    version character varying(14) NOT NULL
);
ALTER TABLE auth.schema_migrations OWNER TO supabase_auth_admin;
CREATE TABLE auth.sessions (
    id uuid NOT NULL, user_id uuid NOT NULL, created_at timestamp with time zone, updated_at timestamp with time zone,
    factor_id uuid, aal auth.aal_level, not_after timestamp with time zone, refreshed_at timestamp without time zone,
    user_agent text, ip inet, tag text, oauth_client_id uuid, refresh_token_hmac_key text, refresh_token_counter bigint,
    scopes text, CONSTRAINT sessions_scopes_length CHECK ((char_length(scopes) <= 4096))
);
ALTER TABLE auth.sessions OWNER TO supabase_auth_admin;
CREATE TABLE auth.sso_domains (
    id uuid NOT NULL, sso_provider_id uuid NOT NULL, domain text NOT NULL, created_at timestamp with time zone,
    updated_at timestamp with time zone, CONSTRAINT "domain not empty" CHECK ((char_length(domain) > 0))
);
ALTER TABLE auth.sso_domains OWNER TO supabase_auth_admin;
CREATE TABLE auth.sso_providers (
    id uuid NOT NULL, resource_id text, created_at timestamp with time zone, updated_at timestamp with time zone,
    disabled boolean,
    CONSTRAINT "resource_id not empty" CHECK (((resource_id = NULL::text) OR (char_length(resource_id) > 0)))
);
ALTER TABLE auth.sso_providers OWNER TO supabase_auth_admin;
CREATE TABLE auth.users (
    instance_id uuid, id uuid NOT NULL, aud character varying(255), role character varying(255),
    email character varying(255), encrypted_password character varying(255),
    email_confirmed_at timestamp with time zone, invited_at timestamp with time zone,
    confirmation_token character varying(255), confirmation_sent_at timestamp with time zone,
    recovery_token character varying(255), recovery_sent_at timestamp with time zone,
    email_change_token_new character varying(255), email_change character varying(255),
    email_change_sent_at timestamp with time zone, last_sign_in_at timestamp with time zone, raw_app_meta_data jsonb,
    raw_user_meta_data jsonb, is_super_admin boolean, created_at timestamp with time zone,
    updated_at timestamp with time zone, phone text DEFAULT NULL::character varying,
    phone_confirmed_at timestamp with time zone, phone_change text DEFAULT ''::character varying,
    phone_change_token character varying(255) DEFAULT ''::character varying,
    phone_change_sent_at timestamp with time zone,
    confirmed_at timestamp with time zone GENERATED ALWAYS AS (LEAST(email_confirmed_at, phone_confirmed_at)) STORED,
    email_change_token_current character varying(255) DEFAULT ''::character varying,
    email_change_confirm_status smallint DEFAULT 0, banned_until timestamp with time zone,
    reauthentication_token character varying(255) DEFAULT ''::character varying,
    reauthentication_sent_at timestamp with time zone, is_sso_user boolean DEFAULT false NOT NULL,
    deleted_at timestamp with time zone, is_anonymous boolean DEFAULT false NOT NULL,
    CONSTRAINT users_email_change_confirm_status_check CHECK (((email_change_confirm_status >= 0) AND (email_change_confirm_status <= 2)))
);
ALTER TABLE auth.users OWNER TO supabase_auth_admin;
CREATE TABLE auth.webauthn_challenges (
    id uuid DEFAULT gen_random_uuid() NOT NULL, user_id uuid, challenge_type text NOT NULL, session_data jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL, expires_at timestamp with time zone NOT NULL,
    CONSTRAINT webauthn_challenges_challenge_type_check CHECK ((challenge_type = ANY (ARRAY['signup'::text, 'registration'::text, 'authentication'::text])))
);
ALTER TABLE auth.webauthn_challenges OWNER TO supabase_auth_admin;
CREATE TABLE auth.webauthn_credentials (
    id uuid DEFAULT gen_random_uuid() NOT NULL, user_id uuid NOT NULL, credential_id bytea NOT NULL,
    public_key bytea NOT NULL, attestation_type text DEFAULT ''::text NOT NULL, aaguid uuid,
    sign_count bigint DEFAULT 0 NOT NULL, transports jsonb DEFAULT '[]'::jsonb NOT NULL,
    backup_eligible boolean DEFAULT false NOT NULL, backed_up boolean DEFAULT false NOT NULL,
    friendly_name text DEFAULT ''::text NOT NULL, created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL, last_used_at timestamp with time zone
);
ALTER TABLE auth.webauthn_credentials OWNER TO supabase_auth_admin;
CREATE SEQUENCE auth.refresh_tokens_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1;
ALTER TABLE auth.refresh_tokens_id_seq OWNER TO supabase_auth_admin;
ALTER SEQUENCE auth.refresh_tokens_id_seq OWNED BY auth.refresh_tokens.id;
ALTER TABLE ONLY auth.refresh_tokens ALTER COLUMN id SET DEFAULT nextval('auth.refresh_tokens_id_seq'::regclass);

-- Its rows stand here, so that the other rows also load into a schema that has them.
COPY auth.schema_migrations (version) FROM stdin;
00
20210710035447
20210722035447
20210730183235
20210909172000
20210927181326
20211122151130
20211124214934
20211202183645
20220114185221
20220114185340
20220224000811
20220323170000
20220429102000
20220531120530
20220614074223
20220811173540
20221003041349
20221003041400
20221011041400
20221020193600
20221021073300
20221021082433
20221027105023
20221114143122
20221114143410
20221125140132
20221208132122
20221215195500
20221215195800
20221215195900
20230116124310
20230116124412
20230131181311
20230322519590
20230402418590
20230411005111
20230508135423
20230523124323
20230818113222
20230914180801
20231027141322
20231114161723
20231117164230
20240115144230
20240214120130
20240306115329
20240314092811
20240427152123
20240612123726
20240729123726
20240802193726
20240806073726
20241009103726
20250717082212
20250731150234
20250804100000
20250901200500
20250903112500
20250904133000
20250925093508
20251007112900
20251104100000
20251111201300
20251201000000
20260115000000
20260121000000
20260219120000
20260302000000
20260625000000
\.
