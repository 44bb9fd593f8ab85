//! The format of tool files as Rust types. Generated from
//! `tool_descriptions/format.schema.json` by `cargo xtask bless -p codegen`; do not edit.
#![allow(clippy::all, clippy::pedantic, clippy::restriction, missing_debug_implementations, unreachable_pub, rustdoc::all)]

///`Argument`
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Argument {
    ///Replaces the server's description of the argument.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub description: ::std::option::Option<::std::string::String>,
    ///Values that fit the argument's schema.
    #[serde(default, skip_serializing_if = "::std::vec::Vec::is_empty")]
    pub examples: ::std::vec::Vec<::serde_json::Value>,
}
///`CommonError`
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CommonError {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub cause: ::std::option::Option<::std::string::String>,
    ///The error message, or how to recognise the error.
    pub error: ::std::string::String,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub solution: ::std::option::Option<::std::string::String>,
}
///`Deprecation`
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Deprecation {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub message: ::std::option::Option<::std::string::String>,
    ///The version that removes the tool.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub removal: ::std::option::Option<::std::string::String>,
    ///The tool to use instead.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub replacement: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub since: ::std::option::Option<::std::string::String>,
}
///`ErrorGuidance`
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ErrorGuidance {
    #[serde(default, skip_serializing_if = "::std::vec::Vec::is_empty")]
    pub common_errors: ::std::vec::Vec<CommonError>,
}
///`Example`
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Example {
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub description: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub explanation: ::std::option::Option<::std::string::String>,
    ///Arguments that fit the tool's schema.
    pub input: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    ///The result that the script gets.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub output: ::std::option::Option<::serde_json::Value>,
}
///Present if `outputSchema` was derived from recorded results. Such a schema is shown, but results are not checked against it.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Observed {
    pub results: u64,
    pub runs: u64,
}
///Further calls wait up to 20 seconds, and are then not sent.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    pub calls: i64,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub note: ::std::option::Option<::std::string::String>,
    pub per: RateLimitPer,
}
///`RateLimitPer`
#[derive(
    ::serde::Deserialize,
    ::serde::Serialize,
    Clone,
    Copy,
    Debug,
    Eq,
    Hash,
    Ord,
    PartialEq,
    PartialOrd
)]
pub enum RateLimitPer {
    #[serde(rename = "second")]
    Second,
    #[serde(rename = "minute")]
    Minute,
    #[serde(rename = "hour")]
    Hour,
    #[serde(rename = "day")]
    Day,
}
impl ::std::fmt::Display for RateLimitPer {
    fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
        match *self {
            Self::Second => f.write_str("second"),
            Self::Minute => f.write_str("minute"),
            Self::Hour => f.write_str("hour"),
            Self::Day => f.write_str("day"),
        }
    }
}
impl ::std::str::FromStr for RateLimitPer {
    type Err = self::error::ConversionError;
    fn from_str(
        value: &str,
    ) -> ::std::result::Result<Self, self::error::ConversionError> {
        match value {
            "second" => Ok(Self::Second),
            "minute" => Ok(Self::Minute),
            "hour" => Ok(Self::Hour),
            "day" => Ok(Self::Day),
            _ => Err("invalid value".into()),
        }
    }
}
impl ::std::convert::TryFrom<&str> for RateLimitPer {
    type Error = self::error::ConversionError;
    fn try_from(
        value: &str,
    ) -> ::std::result::Result<Self, self::error::ConversionError> {
        value.parse()
    }
}
impl ::std::convert::TryFrom<::std::string::String> for RateLimitPer {
    type Error = self::error::ConversionError;
    fn try_from(
        value: ::std::string::String,
    ) -> ::std::result::Result<Self, self::error::ConversionError> {
        value.parse()
    }
}
///Adds to or replaces a server's description of one tool.
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ToolFile {
    ///Texts for arguments that the server declares, by argument name. Only the server can add or remove arguments.
    #[serde(
        default,
        skip_serializing_if = ":: std :: collections :: BTreeMap::is_empty"
    )]
    pub arguments: ::std::collections::BTreeMap<::std::string::String, Argument>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub category: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub deprecation: ::std::option::Option<Deprecation>,
    ///Replaces the server's description.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub description: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub error_guidance: ::std::option::Option<ErrorGuidance>,
    #[serde(default, skip_serializing_if = "::std::vec::Vec::is_empty")]
    pub examples: ::std::vec::Vec<Example>,
    #[serde(default, skip_serializing_if = "::std::vec::Vec::is_empty")]
    pub groups: ::std::vec::Vec<::std::string::String>,
    ///The tool's exact name in the protocol.
    pub name: ::std::string::String,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub observed: ::std::option::Option<Observed>,
    ///Schema of the result, if the server declares none.
    #[serde(
        rename = "outputSchema",
        default,
        skip_serializing_if = "::serde_json::Map::is_empty"
    )]
    pub output_schema: ::serde_json::Map<::std::string::String, ::serde_json::Value>,
    ///Digest of the pulled title, description and arguments. While it matches, they are unedited, and pulling again may update them.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub pulled: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub rate_limit: ::std::option::Option<RateLimit>,
    ///Tools of the same server by name, and tools of other servers as `server.tool`.
    #[serde(default, skip_serializing_if = "::std::vec::Vec::is_empty")]
    pub related_tools: ::std::vec::Vec<::std::string::String>,
    #[serde(rename = "$schema", skip_serializing_if = "::std::option::Option::is_none")]
    pub schema: ::std::option::Option<::std::string::String>,
    #[serde(default, skip_serializing_if = "::std::vec::Vec::is_empty")]
    pub tags: ::std::vec::Vec<::std::string::String>,
    ///Replaces the server's title.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub title: ::std::option::Option<::std::string::String>,
    ///Digest of the server's description that this file was last compared with.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub upstream: ::std::option::Option<::std::string::String>,
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub usage_guidance: ::std::option::Option<UsageGuidance>,
    ///Version of the tool's interface.
    #[serde(skip_serializing_if = "::std::option::Option::is_none")]
    pub version: ::std::option::Option<::std::string::String>,
}
///`UsageGuidance`
#[derive(::serde::Deserialize, ::serde::Serialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct UsageGuidance {
    #[serde(default, skip_serializing_if = "::std::vec::Vec::is_empty")]
    pub common_patterns: ::std::vec::Vec<::std::string::String>,
    #[serde(default, skip_serializing_if = "::std::vec::Vec::is_empty")]
    pub important_notes: ::std::vec::Vec<::std::string::String>,
}
/// Error types.
pub mod error {
    /// Error from a `TryFrom` or `FromStr` implementation.
    pub struct ConversionError(::std::borrow::Cow<'static, str>);
    impl ::std::error::Error for ConversionError {}
    impl ::std::fmt::Display for ConversionError {
        fn fmt(
            &self,
            f: &mut ::std::fmt::Formatter<'_>,
        ) -> Result<(), ::std::fmt::Error> {
            ::std::fmt::Display::fmt(&self.0, f)
        }
    }
    impl ::std::fmt::Debug for ConversionError {
        fn fmt(
            &self,
            f: &mut ::std::fmt::Formatter<'_>,
        ) -> Result<(), ::std::fmt::Error> {
            ::std::fmt::Debug::fmt(&self.0, f)
        }
    }
    impl From<&'static str> for ConversionError {
        fn from(value: &'static str) -> Self {
            Self(value.into())
        }
    }
    impl From<String> for ConversionError {
        fn from(value: String) -> Self {
            Self(value.into())
        }
    }
}
