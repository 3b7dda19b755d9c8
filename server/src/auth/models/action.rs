//! The audit log's actions and their kinds.

macro_rules! actions {
    ($($name:ident = $text:literal in $kind:literal,)*) => {
        /// What was done.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Action { $($name,)* }

        impl Action {
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Notes it in the process's log.
            pub fn log(self) {
                tracing::info!(target: "ferrobase::audit", action = self.as_str(), "audit event");
            }

            pub fn log_type(self) -> &'static str {
                match self { $(Self::$name => $kind,)* }
            }
        }
    };
}

actions! {
    Login = "login" in "account",
    Logout = "logout" in "account",
    InviteAccepted = "invite_accepted" in "account",
    UserSignedUp = "user_signedup" in "team",
    UserInvited = "user_invited" in "team",
    UserDeleted = "user_deleted" in "team",
    TokenRevoked = "token_revoked" in "token",
    TokenRefreshed = "token_refreshed" in "token",
    UserModified = "user_modified" in "user",
    UserRecoveryRequested = "user_recovery_requested" in "user",
    UserReauthenticateRequested = "user_reauthenticate_requested" in "user",
    UserConfirmationRequested = "user_confirmation_requested" in "user",
    UserRepeatedSignup = "user_repeated_signup" in "user",
    UserUpdatedPassword = "user_updated_password" in "user",
    IdentityLinked = "identity_linked" in "user",
    IdentityUnlinked = "identity_unlinked" in "user",
    PasskeyCreated = "passkey_created" in "user",
    PasskeyUpdated = "passkey_updated" in "user",
    PasskeyDeleted = "passkey_deleted" in "user",
    FactorInProgress = "factor_in_progress" in "factor",
    ChallengeCreated = "challenge_created" in "factor",
    VerificationAttempted = "verification_attempted" in "factor",
    FactorUnenrolled = "factor_unenrolled" in "factor",
    FactorDeleted = "factor_deleted" in "factor",
    FactorUpdated = "factor_updated" in "factor",
    RecoveryCodesGenerated = "recovery_codes_generated" in "factor",
    RecoveryCodesVerified = "recovery_codes_verified" in "factor",
    RecoveryCodesRegenerated = "recovery_codes_regenerated" in "factor",
    RecoveryCodesDeleted = "recovery_codes_deleted" in "factor",
}
