//! Pending proofs: sent tokens, their confirmation and invalidation.

use serde_json::Value;
use uuid::Uuid;

use super::{Column, User};
use crate::auth::error::Fault;
use crate::auth::models::confirmation::ProvedData;
use crate::auth::models::identity::Identity;
use crate::auth::models::one_time_token::{self, Purpose};
use crate::auth::models::store::Db;
use crate::auth::models::{Json, flow_state, identity, now, session, unproved_address};

/// The columns of pending tokens and changes.
const PENDING: [Column; 14] = [
    Column::ConfirmationToken,
    Column::ConfirmationSentAt,
    Column::RecoveryToken,
    Column::RecoverySentAt,
    Column::EmailChange,
    Column::EmailChangeTokenCurrent,
    Column::EmailChangeTokenNew,
    Column::EmailChangeSentAt,
    Column::EmailChangeConfirmStatus,
    Column::PhoneChange,
    Column::PhoneChangeToken,
    Column::PhoneChangeSentAt,
    Column::ReauthenticationToken,
    Column::ReauthenticationSentAt,
];

impl User {
    /// Confirms the e-mail address, which now counts as proved, and spends every one-time token.
    pub async fn confirm(&mut self, db: &Db) -> Result<(), Fault> {
        self.confirmation_token.clear();
        self.email_confirmed_at = Some(now());
        self.update(db, &[Column::ConfirmationToken, Column::EmailConfirmedAt]).await?;
        let mut verified = Json::new();
        verified.insert("email_verified".to_owned(), Value::Bool(true));
        self.merge_user_metadata(db, &verified).await?;
        let forgotten =
            futures_util::future::join(one_time_token::clear_all(db, self.id), unproved_address::forget(db, self.id));
        let (tokens, address) = forgotten.await;
        tokens.and(address)
    }

    /// Whether nothing about the account was ever proved, so that anybody may have created it.
    pub fn is_unproved(&self) -> bool {
        !self.is_confirmed() && !self.is_phone_confirmed() && !self.is_anonymous && !self.is_sso_user
    }

    /// Whether the address is confirmed and was proved.
    pub async fn has_proved_email(&self, db: &Db) -> Result<bool, Fault> {
        Ok(self.is_confirmed() && !unproved_address::is_of(db, self.id, &self.email).await?)
    }

    /// Whether the address came from a provider that did not verify it and was never proved, so that the account may be
    /// somebody else's. Autoconfirm may have confirmed it.
    pub async fn has_claimed_email(&self, db: &Db) -> Result<bool, Fault> {
        if self.email.is_empty() {
            return Ok(false);
        }
        // An anonymous user has no other unconfirmed address: those of changes are stored apart.
        let is_linked = self.is_anonymous && !self.is_confirmed();
        Ok(is_linked || unproved_address::is_of(db, self.id, &self.email).await?)
    }

    /// Replaces what others gave the account before the proof: its password, metadata, unverified identities and
    /// sessions.
    pub async fn receive(&mut self, db: &Db, proved_data: &ProvedData) -> Result<(), Fault> {
        let mut claims = None;
        if let ProvedData::Own { encrypted_password, user_metadata } = proved_data {
            self.encrypted_password.clone_from(encrypted_password);
            if let Some(metadata) = user_metadata {
                // Metadata of an invitation is merged with the user's own.
                let mut merged = self.user_metadata.take().filter(|_| self.invited_at.is_some()).unwrap_or_default();
                merged.extend(metadata.clone());
                self.user_metadata = Some(merged);
            }
            self.update(db, &[Column::EncryptedPassword, Column::UserMetadata]).await?;
            claims = user_metadata.as_ref();
        }
        for known in self.identities.take().unwrap_or_default() {
            let own = matches!(known.provider.as_str(), "email" | "phone");
            if !own && !known.is_email_verified() {
                identity::delete(db, known.id).await?;
                continue;
            }
            let mut known = known;
            if let Some(claims) = claims.filter(|_| own) {
                known.replace_data(db, claims.clone()).await?;
            }
            self.identities.get_or_insert_default().push(known);
        }
        if let Some(claims) = claims.filter(|_| self.identities().is_empty()) {
            let provider = if self.email.is_empty() { "phone" } else { "email" };
            let created = identity::create(db, self.id, provider, claims.clone()).await?;
            self.identities.get_or_insert_default().push(created);
        }
        session::delete_all(db, self.id).await
    }

    /// Removes everything that was added to the account before its owner proved the address. The account is then like
    /// an unconfirmed one.
    pub async fn hand_over(&mut self, db: &Db) -> Result<(), Fault> {
        self.clear_pending(db).await?;
        db.execute("delete from auth.identities where user_id = $1", &[&self.id]).await?;
        self.identities = Some(Vec::new());
        self.user_metadata = Some(Json::new());
        self.remove_additions(db).await
    }

    /// The same for a proof by an identity, which stays. The model still lists the others.
    pub async fn hand_over_to(&mut self, db: &Db, keep: &Identity) -> Result<(), Fault> {
        self.spend_pending(db).await?;
        db.execute("delete from auth.identities where user_id = $1 and id <> $2", &[&self.id, &keep.id]).await?;
        self.user_metadata.clone_from(&keep.identity_data);
        self.remove_additions(db).await
    }

    async fn remove_additions(&mut self, db: &Db) -> Result<(), Fault> {
        self.encrypted_password = None;
        self.email_confirmed_at = None;
        self.phone.clear();
        self.phone_confirmed_at = None;
        self.is_anonymous = false;
        let columns = [
            Column::EncryptedPassword,
            Column::UserMetadata,
            Column::EmailConfirmedAt,
            Column::Phone,
            Column::PhoneConfirmedAt,
            Column::IsAnonymous,
        ];
        self.update(db, &columns).await?;
        flow_state::delete_issued(db, self.id).await?;
        flow_state::delete_linking(db, self.id).await?;
        for table in ["mfa_factors", "webauthn_credentials", "oauth_consents", "oauth_authorizations", "sessions"] {
            db.execute(&format!("delete from auth.{table} where user_id = $1"), &[&self.id]).await?;
        }
        self.factors.clear();
        unproved_address::forget(db, self.id).await
    }

    /// Confirms the phone number and spends every one-time token.
    pub async fn confirm_phone(&mut self, db: &Db) -> Result<(), Fault> {
        self.confirmation_token.clear();
        self.phone_confirmed_at = Some(now());
        self.update(db, &[Column::ConfirmationToken, Column::PhoneConfirmedAt]).await?;
        one_time_token::clear_all(db, self.id).await
    }

    /// Spends the recovery token and every one-time token.
    pub async fn recover(&mut self, db: &Db) -> Result<(), Fault> {
        self.recovery_token.clear();
        self.update(db, &[Column::RecoveryToken]).await?;
        one_time_token::clear_all(db, self.id).await
    }

    /// Spends the reauthentication token and every one-time token, and returns whether it existed. Only
    /// one of several requests with a code succeeds.
    pub async fn confirm_reauthentication(&mut self, db: &Db) -> Result<bool, Fault> {
        let token = std::mem::take(&mut self.reauthentication_token);
        self.updated_at = now();
        let spent = db
            .execute(
                "update auth.users set reauthentication_token = '', updated_at = $3 \
                 where id = $1 and reauthentication_token = $2",
                &[&self.id, &token, &self.updated_at],
            )
            .await?;
        if spent == 1 {
            one_time_token::clear_all(db, self.id).await?;
        }
        Ok(spent == 1)
    }

    /// Makes the pending address the user's, also in the e-mail identity.
    ///
    /// Also deletes issued auth codes, because they proved the previous address. Upstream keeps them, and a
    /// session from one would have a mailed method that is newer than the change.
    pub async fn confirm_email_change(&mut self, db: &Db) -> Result<(), Fault> {
        self.email = std::mem::take(&mut self.email_change);
        self.email_change_token_current.clear();
        self.email_change_token_new.clear();
        self.email_change_confirm_status = 0;
        self.update(
            db,
            &[
                Column::Email,
                Column::EmailChange,
                Column::EmailChangeTokenCurrent,
                Column::EmailChangeTokenNew,
                Column::EmailChangeConfirmStatus,
            ],
        )
        .await?;
        one_time_token::clear_all(db, self.id).await?;
        flow_state::delete_issued(db, self.id).await?;
        unproved_address::forget(db, self.id).await?;
        if !self.is_confirmed() {
            self.confirm(db).await?;
        }
        Ok(())
    }

    /// Makes the pending number the number.
    pub async fn confirm_phone_change(&mut self, db: &Db) -> Result<(), Fault> {
        self.phone = std::mem::take(&mut self.phone_change);
        self.phone_change_token.clear();
        self.phone_confirmed_at = Some(now());
        self.update(db, &[Column::Phone, Column::PhoneChange, Column::PhoneChangeToken, Column::PhoneConfirmedAt])
            .await?;
        one_time_token::clear_all(db, self.id).await
    }

    /// Stores the password already set on the model; spends all tokens and issued codes, and ends all sessions but `keep`.
    pub async fn update_password(&mut self, db: &Db, keep: Option<Uuid>) -> Result<(), Fault> {
        let (email_change, phone_change) = (self.email_change.clone(), self.phone_change.clone());
        self.forget_pending();
        // Requested changes stay visible; only their tokens are cleared.
        (self.email_change, self.phone_change) = (email_change, phone_change);
        let mut columns = vec![Column::EncryptedPassword];
        columns.extend(PENDING.iter().filter(|column| {
            !matches!(column, Column::EmailChange | Column::PhoneChange | Column::EmailChangeConfirmStatus)
        }));
        self.update(db, &columns).await?;
        one_time_token::clear_all(db, self.id).await?;
        flow_state::delete_issued(db, self.id).await?;
        match keep {
            Some(kept) => session::delete_others(db, self.id, kept).await,
            None => session::delete_all(db, self.id).await,
        }
    }

    /// Invalidates every pending link and code, but keeps the times of sending.
    pub async fn spend_pending(&mut self, db: &Db) -> Result<(), Fault> {
        let sent = (
            self.confirmation_sent_at,
            self.recovery_sent_at,
            self.email_change_sent_at,
            self.phone_change_sent_at,
            self.reauthentication_sent_at,
        );
        self.forget_pending();
        (
            self.confirmation_sent_at,
            self.recovery_sent_at,
            self.email_change_sent_at,
            self.phone_change_sent_at,
            self.reauthentication_sent_at,
        ) = sent;
        self.update(db, &PENDING).await?;
        one_time_token::clear_all(db, self.id).await
    }

    /// Drops every pending confirmation and change.
    pub async fn clear_pending(&mut self, db: &Db) -> Result<(), Fault> {
        self.forget_pending();
        self.update(db, &PENDING).await?;
        one_time_token::clear_all(db, self.id).await
    }

    fn forget_pending(&mut self) {
        for text in [
            &mut self.confirmation_token,
            &mut self.recovery_token,
            &mut self.email_change,
            &mut self.email_change_token_current,
            &mut self.email_change_token_new,
            &mut self.phone_change,
            &mut self.phone_change_token,
            &mut self.reauthentication_token,
        ] {
            text.clear();
        }
        for instant in [
            &mut self.confirmation_sent_at,
            &mut self.recovery_sent_at,
            &mut self.email_change_sent_at,
            &mut self.phone_change_sent_at,
            &mut self.reauthentication_sent_at,
        ] {
            *instant = None;
        }
    }

    /// Sets the token of `purpose` on the model, for the mail that will contain it.
    pub fn set_token(&mut self, purpose: Purpose, hash: &str) {
        let column = match purpose {
            Purpose::Confirmation => &mut self.confirmation_token,
            Purpose::Recovery => &mut self.recovery_token,
            Purpose::Reauthentication => &mut self.reauthentication_token,
            Purpose::EmailChangeNew => &mut self.email_change_token_new,
            Purpose::EmailChangeCurrent => &mut self.email_change_token_current,
            Purpose::PhoneChange => &mut self.phone_change_token,
        };
        hash.clone_into(column);
    }

    /// Stores a new token of `purpose` in its column, with the time it was sent, and as a one-time token.
    pub async fn save_token(&mut self, db: &Db, purpose: Purpose, hash: String) -> Result<(), Fault> {
        let sent = Some(now());
        let columns: &[Column] = match purpose {
            Purpose::Confirmation => {
                (self.confirmation_token, self.confirmation_sent_at) = (hash.clone(), sent);
                &[Column::ConfirmationToken, Column::ConfirmationSentAt]
            }
            Purpose::Recovery => {
                (self.recovery_token, self.recovery_sent_at) = (hash.clone(), sent);
                &[Column::RecoveryToken, Column::RecoverySentAt]
            }
            Purpose::Reauthentication => {
                (self.reauthentication_token, self.reauthentication_sent_at) = (hash.clone(), sent);
                &[Column::ReauthenticationToken, Column::ReauthenticationSentAt]
            }
            Purpose::EmailChangeNew => {
                (self.email_change_token_new, self.email_change_sent_at) = (hash.clone(), sent);
                &[Column::EmailChangeTokenNew, Column::EmailChangeSentAt]
            }
            Purpose::EmailChangeCurrent => {
                (self.email_change_token_current, self.email_change_sent_at) = (hash.clone(), sent);
                &[Column::EmailChangeTokenCurrent, Column::EmailChangeSentAt]
            }
            Purpose::PhoneChange => {
                (self.phone_change_token, self.phone_change_sent_at) = (hash.clone(), sent);
                &[Column::PhoneChange, Column::PhoneChangeToken, Column::PhoneChangeSentAt]
            }
        };
        self.update(db, columns).await?;
        let relates_to = match purpose {
            Purpose::EmailChangeNew => &self.email_change,
            Purpose::PhoneChange => &self.phone_change,
            _ if self.email.is_empty() => &self.phone,
            _ => &self.email,
        };
        one_time_token::create(db, self.id, purpose, relates_to, &hash).await
    }
}
