//! The private key of a client, which signs the assertions that prove who the client is (RFC 7523,
//! `private_key_jwt`).

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    RSA_PKCS1_SHA256, RsaKeyPair,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::json;

/// How long an assertion is valid. It allows for clocks that differ by minutes.
const LIFE_S: u64 = 5 * 60;

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct ClientKey(Arc<KeyPair>);

enum KeyPair {
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientKey({})", self.algorithm())
    }
}

impl ClientKey {
    /// Parses a key in PKCS#8 as PEM text.
    pub(crate) fn parse(pem: &str) -> Result<Self, &'static str> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes());
        let der = der.map_err(|_| "it has no PEM block `PRIVATE KEY` (PKCS#8, not encrypted)")?;
        let der = der.secret_pkcs8_der();
        let random = SystemRandom::new();
        let curve = |algorithm| EcdsaKeyPair::from_pkcs8(algorithm, der, &random);
        let pair = if let Ok(pair) = curve(&ECDSA_P256_SHA256_FIXED_SIGNING) {
            KeyPair::P256(pair)
        } else if let Ok(pair) = curve(&ECDSA_P384_SHA384_FIXED_SIGNING) {
            KeyPair::P384(pair)
        } else if let Ok(pair) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der) {
            KeyPair::Ed25519(pair)
        } else {
            let pair = RsaKeyPair::from_pkcs8(der);
            KeyPair::Rsa(pair.map_err(|_| "it is no key of P-256, P-384, Ed25519 or RSA")?)
        };
        Ok(Self(Arc::new(pair)))
    }

    /// Returns the algorithm of the signatures, as JWS names it.
    pub(crate) fn algorithm(&self) -> &'static str {
        match &*self.0 {
            KeyPair::P256(_) => "ES256",
            KeyPair::P384(_) => "ES384",
            KeyPair::Ed25519(_) => "EdDSA",
            KeyPair::Rsa(_) => "RS256",
        }
    }

    /// Returns a signed assertion of this client for this authorization server.
    pub(super) fn assertion(
        &self,
        client_id: &str,
        audience: &str,
        now_ms: u64,
    ) -> Result<String, &'static str> {
        const FAILED: &str = "the assertion of the client could not be signed";
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|_| FAILED)?;
        let now_s = now_ms / 1_000;
        let header = json!({ "alg": self.algorithm(), "typ": "JWT" });
        let claims = json!({
            "iss": client_id,
            "sub": client_id,
            "aud": audience,
            "jti": URL_SAFE_NO_PAD.encode(id),
            "iat": now_s,
            "exp": now_s + LIFE_S,
        });
        let encoded = |part: String| URL_SAFE_NO_PAD.encode(part);
        let signed = format!(
            "{}.{}",
            encoded(header.to_string()),
            encoded(claims.to_string())
        );
        let signature = self.sign(signed.as_bytes()).ok_or(FAILED)?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match &*self.0 {
            KeyPair::P256(pair) | KeyPair::P384(pair) => {
                let signature = pair.sign(&random, message).ok()?;
                Some(signature.as_ref().to_vec())
            }
            KeyPair::Ed25519(pair) => Some(pair.sign(message).as_ref().to_vec()),
            KeyPair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                let signed = pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature);
                signed.ok().map(|()| signature)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;
    use ring::signature::{ECDSA_P256_SHA256_FIXED, ED25519, KeyPair as _, UnparsedPublicKey};
    use serde_json::Value;

    use super::*;

    fn pem(der: &[u8]) -> String {
        let text = STANDARD.encode(der);
        format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n")
    }

    #[test]
    fn assertion_names_client_and_issuer_and_is_signed() {
        let random = SystemRandom::new();
        let curve = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let p256 = EcdsaKeyPair::generate_pkcs8(curve, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(curve, p256.as_ref(), &random).unwrap();
        let p256_public = pair.public_key().as_ref().to_vec();
        let ed25519 = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(ed25519.as_ref()).unwrap();
        let ed25519_public = pair.public_key().as_ref().to_vec();
        let es256: &dyn ring::signature::VerificationAlgorithm = &ECDSA_P256_SHA256_FIXED;
        for (der, name, algorithm, public) in [
            (p256.as_ref(), "ES256", es256, p256_public),
            (ed25519.as_ref(), "EdDSA", &ED25519, ed25519_public),
        ] {
            let key = ClientKey::parse(&pem(der)).unwrap();
            let assertion = key.assertion("own", "https://as.example", 10_000).unwrap();
            let (signed, signature) = assertion.rsplit_once('.').unwrap();
            let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
            let public = UnparsedPublicKey::new(algorithm, public);
            public.verify(signed.as_bytes(), &signature).unwrap();
            let part = |text: &str| -> Value {
                serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
            };
            let (header, claims) = signed.split_once('.').unwrap();
            assert_eq!(part(header)["alg"], name);
            let mut claims = part(claims);
            let id = claims["jti"].take();
            assert!(id.as_str().unwrap().len() > 16, "{id}");
            let expected = json!({
                "iss": "own", "sub": "own", "aud": "https://as.example",
                "jti": null, "iat": 10, "exp": 310,
            });
            assert_eq!(claims, expected);
        }
    }

    #[test]
    fn text_that_is_no_key_is_refused() {
        for (text, why) in [
            ("", "PEM block"),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n",
                "PEM block",
            ),
            (&*pem(b"nonsense"), "no key of"),
        ] {
            let refused = ClientKey::parse(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
