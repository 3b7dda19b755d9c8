//! The default mails: subject, HTML body and text body, all Go templates.

/// A default mail.
pub struct DefaultMail {
    pub subject: &'static str,
    /// The content of the HTML body, inside the shared frame.
    pub html: &'static str,
    pub text: &'static str,
}

/// The default of a mail, by the name of its setting.
pub fn default_mail(name: &str) -> DefaultMail {
    let (subject, html, text) = match name {
        "invite" => (
            "You've been invited",
            "<h1>You have been invited</h1>\n<p>You have been invited to create an account for {{ .Email }}. Accept the invitation to sign in.</p>\n<p><a class=\"button\" href=\"{{ .ConfirmationURL }}\">Accept the invitation</a></p>",
            "You have been invited to create an account for {{ .Email }}. Accept the invitation here:\n\n{{ .ConfirmationURL }}\n",
        ),
        "confirmation" => (
            "Confirm your email address",
            "<h1>Is this your address?</h1>\n<p>An account was created with {{ .Email }}. Confirm the address to start using it.</p>\n<p><a class=\"button\" href=\"{{ .ConfirmationURL }}\">Confirm this address</a></p>\n<p class=\"quiet\">If this was not you, ignore this email: an unconfirmed address cannot be used.</p>",
            "An account was created with {{ .Email }}. Confirm the address here to start using it:\n\n{{ .ConfirmationURL }}\n\nIf this was not you, ignore this email.\n",
        ),
        "recovery" => (
            "Reset your password",
            "<h1>Choose a new password</h1>\n<p>A new password was requested for {{ .Email }}. This link signs you in so that you can set one.</p>\n<p><a class=\"button\" href=\"{{ .ConfirmationURL }}\">Choose a new password</a></p>\n<p class=\"quiet\">If you did not request this, ignore this email: your password stays unchanged.</p>",
            "A new password was requested for {{ .Email }}. This link signs you in so that you can set one:\n\n{{ .ConfirmationURL }}\n\nIf you did not request this, ignore this email: your password stays unchanged.\n",
        ),
        "magic_link" => (
            "Your sign-in link",
            "<h1>Sign in</h1>\n<p>This link signs you in as {{ .Email }}. It works once and expires soon.</p>\n<p><a class=\"button\" href=\"{{ .ConfirmationURL }}\">Sign in</a></p>",
            "This link signs you in as {{ .Email }}. It works once and expires soon:\n\n{{ .ConfirmationURL }}\n",
        ),
        "email_change" => (
            "Confirm your new email address",
            "<h1>A new address for your account</h1>\n<p>The address of your account is about to change from {{ .Email }} to {{ .NewEmail }}. Please confirm the change.</p>\n<p><a class=\"button\" href=\"{{ .ConfirmationURL }}\">Confirm the change</a></p>\n<p class=\"quiet\">If you did not request this, ignore this email: the address stays unchanged.</p>",
            "The address of your account is about to change from {{ .Email }} to {{ .NewEmail }}. Confirm the change here:\n\n{{ .ConfirmationURL }}\n\nIf you did not request this, ignore this email: the address stays unchanged.\n",
        ),
        "reauthentication" => (
            "{{ .Token }} is your verification code",
            "<h1>Your code</h1>\n<p>Enter this code in the app to confirm that it is you.</p>\n<p class=\"code\">{{ .Token }}</p>\n<p class=\"quiet\">If the app did not ask you for a code, somebody may be using your session: change your password.</p>",
            "Enter this code in the app to confirm that it is you: {{ .Token }}\n\nIf the app did not ask you for a code, somebody may be using your session: change your password.\n",
        ),
        "password_changed_notification" => (
            "Your password was changed",
            "<h1>Your password was changed</h1>\n<p>The password of {{ .Email }} was changed just now.</p>\n<p class=\"quiet\">If this was not you, reset your password now and contact the people who run the app.</p>",
            "The password of {{ .Email }} was changed just now.\n\nIf this was not you, reset your password now and contact the people who run the app.\n",
        ),
        "email_changed_notification" => (
            "Your email address was changed",
            "<h1>Your address was changed</h1>\n<p>The address of your account was changed from {{ .OldEmail }} to {{ .Email }}.</p>\n<p class=\"quiet\">If this was not you, contact the people who run the app.</p>",
            "The address of your account was changed from {{ .OldEmail }} to {{ .Email }}.\n\nIf this was not you, contact the people who run the app.\n",
        ),
        "phone_changed_notification" => (
            "Your phone number was changed",
            "<h1>Your phone number was changed</h1>\n<p>The phone number of {{ .Email }} was changed from {{ .OldPhone }} to {{ .Phone }}.</p>\n<p class=\"quiet\">If this was not you, contact the people who run the app.</p>",
            "The phone number of {{ .Email }} was changed from {{ .OldPhone }} to {{ .Phone }}.\n\nIf this was not you, contact the people who run the app.\n",
        ),
        "identity_linked_notification" => (
            "A new sign-in method was linked to your account",
            "<h1>A sign-in method was added</h1>\n<p>{{ .Provider }} can now be used to sign in as {{ .Email }}.</p>\n<p class=\"quiet\">If this was not you, contact the people who run the app.</p>",
            "{{ .Provider }} can now be used to sign in as {{ .Email }}.\n\nIf this was not you, contact the people who run the app.\n",
        ),
        "identity_unlinked_notification" => (
            "A sign-in method was removed from your account",
            "<h1>A sign-in method was removed</h1>\n<p>{{ .Provider }} can no longer be used to sign in as {{ .Email }}.</p>\n<p class=\"quiet\">If this was not you, contact the people who run the app.</p>",
            "{{ .Provider }} can no longer be used to sign in as {{ .Email }}.\n\nIf this was not you, contact the people who run the app.\n",
        ),
        "mfa_factor_enrolled_notification" => (
            "A new verification method was added to your account",
            "<h1>A second factor was added</h1>\n<p>A second factor ({{ .FactorType }}) was added to the account of {{ .Email }}.</p>\n<p class=\"quiet\">If this was not you, contact the people who run the app.</p>",
            "A second factor ({{ .FactorType }}) was added to the account of {{ .Email }}.\n\nIf this was not you, contact the people who run the app.\n",
        ),
        _ => (
            "A verification method was removed from your account",
            "<h1>A second factor was removed</h1>\n<p>A second factor ({{ .FactorType }}) was removed from the account of {{ .Email }}.</p>\n<p class=\"quiet\">If this was not you, contact the people who run the app.</p>",
            "A second factor ({{ .FactorType }}) was removed from the account of {{ .Email }}.\n\nIf this was not you, contact the people who run the app.\n",
        ),
    };
    DefaultMail { subject, html, text }
}

/// The frame around a default HTML body: readable without images and in the dark.
pub fn frame(body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <style>\nbody {{ margin: 0; padding: 32px 16px; font: 16px/1.5 system-ui, sans-serif; }}\n\
         main {{ max-width: 34em; margin: 0 auto; }}\nh1 {{ font-size: 22px; }}\n\
         .button {{ display: inline-block; padding: 12px 20px; border-radius: 8px; background: #1d4ed8; color: #fff; text-decoration: none; }}\n\
         .code {{ font-size: 28px; letter-spacing: 4px; }}\n.quiet {{ font-size: 14px; opacity: .75; }}\n\
         </style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::outside::mailer::Template;
    use crate::config::MAILS;

    #[test]
    fn every_default_parses() {
        for mail in MAILS {
            let default = default_mail(mail);
            for text in [default.subject, default.text, &frame(default.html)] {
                assert!(Template::parse(text).is_ok(), "{mail}");
            }
        }
    }
}
