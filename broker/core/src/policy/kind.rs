//! Every kind of finding: its stable word, its severity and a one-sentence description.
//! `docs/policy-check.md` has a line for each kind.

use serde::{Serialize, Serializer};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// No run starts with such a rule.
    Error,
    /// The rule can be loaded, but probably does not do what its author intended.
    Warning,
}

macro_rules! kinds {
    ($($kind:ident $severity:ident $word:literal $about:literal)*) => {
        /// The kind of a finding about a rule, with a stable word.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind { $($kind),* }

        impl Kind {
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$kind => $word),* }
            }

            /// Returns one sentence that describes the kind for any rule.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $(Self::$kind => $about),* }
            }

            #[must_use]
            pub const fn severity(self) -> Severity {
                match self { $(Self::$kind => Severity::$severity),* }
            }
        }
    };
}

kinds! {
    Unreadable Error "unreadable" "A rule is not valid Cedar."
    TooDeep Error "too-deep" "A rule is too long, nests too deeply or joins too many conditions."
    TooMany Error "too-many" "There are too many rules, or too much text."
    FileUnclear Error "file-unclear" "Cedar and airlock find different rules in a file."
    AnnotationUnknown Error "annotation-unknown" "A rule has an unknown annotation."
    AnnotationMissing Error "annotation-missing" "A rule has no id, owner or reason."
    AnnotationUnusable Error "annotation-unusable" "An annotation is empty, too long, or has invalid characters."
    IdTaken Error "id-taken" "Two rules have the same id."
    PromptMissing Error "prompt-missing" "A rule asks for approval but has no `@prompt` with the question."
    PromptIdle Error "prompt-idle" "A rule has a `@prompt` that is never shown."
    TighteningPermits Error "tightening-permits" "A folder that may only forbid contains a permit."
    PrincipalOrResource Error "principal-or-resource" "A rule constrains `principal` or `resource`, which calls do not have."
    FileWordPermits Error "file-word-permits" "A rule permits by a group or tag from a tool file."
    ContextAsValue Error "context-as-value" "The whole context is used as a value."
    ApprovalMisused Error "approval-misused" "A condition uses `approval` to forbid, or compares it with a number that is not a level."
    LabelsMisused Error "labels-misused" "A rule allows more calls after the run has read more data."
    LabelUnknown Error "label-unknown" "A rule names an unknown label."
    LabelsBesideSum Error "labels-beside-sum" "A label can prevent an error that would deny the call."
    RawText Error "raw-text" "A rule compares a path or an address as text."
    ToolUnknown Error "tool-unknown" "A rule names an unknown tool or group."
    ServerUnknown Error "server-unknown" "A rule names an unknown server; a known server has a similar name."
    GroupAsTool Error "group-as-tool" "A rule compares the tool with a group by `==`, which is never true."
    ArgumentUnknown Error "argument-unknown" "A rule reads an argument that none of its tools has."
    FactUnknown Error "fact-unknown" "A rule reads an unknown member of the context."
    OptionalUnguarded Error "optional-unguarded" "A rule reads an optional value without `has`."
    ArgumentUnmodelled Error "argument-unmodelled" "A rule reads an argument that rules cannot see."
    TypeMismatch Error "type-mismatch" "A rule compares values of different types."
    Unusable Error "unusable" "The rules cannot be checked against the tools."
    GrantUnusable Error "grant-unusable" "A grant file, or one grant in it, is invalid."
    GrantWithoutExpiry Error "grant-without-expiry" "A grant has no expiry."

    GrantExpired Warning "grant-expired" "A grant has expired."
    PermitUnscoped Warning "permit-unscoped" "A permit covers every tool without a condition."
    ForbidEverything Warning "forbid-everything" "A forbid covers every call."
    DestroysUnasked Warning "destroys-unasked" "A destructive tool is permitted without asking."
    RuleShadowed Warning "rule-shadowed" "Another rule already has the same effect."
    RuleDead Warning "rule-dead" "No call can meet the condition of a rule."
    RuleOverruled Warning "rule-overruled" "A forbid covers every call that a permit allows."
    MayOverflow Warning "may-overflow" "A sum can overflow, which denies the call."
    EmptySetPasses Warning "empty-set-passes" "A condition on all members of a set is true for an empty set."
    SomeForAll Warning "some-for-all" "A permit checks one destination or path and ignores the others."
    AllForSome Warning "all-for-some" "A forbid no longer applies when a call names one more destination or path."
    AbsentGives Warning "absent-gives" "A rule permits because a value is unknown."
    PatternAsText Warning "pattern-as-text" "A pattern is compared as plain text, where `*` is not a wildcard."
    PatternIdle Warning "pattern-idle" "A pattern has no wildcard."
    HostPattern Warning "host-pattern" "A rule recognises a host or domain by the end of a text."
    ValueMisspelt Warning "value-misspelt" "A rule compares a fact with a value that the fact never has."
    RootUnknown Warning "root-unknown" "A rule names a root that the configuration lacks."
    RootMissing Warning "root-missing" "A configured root is not an existing folder."
    ValueUnknown Warning "value-unknown" "A rule compares with a value that the tool's description does not list."
    OutOfRange Warning "out-of-range" "A rule compares a fact with a number that the fact never has."
    AlwaysTrue Warning "always-true" "A part of a condition is true for every call."
    PatternOverruled Warning "pattern-overruled" "A pattern never takes effect, because other rules win wherever it matches."
    PatternUnmatched Warning "pattern-unmatched" "A pattern matches no tool."
    LabelMissing Warning "label-missing" "The configuration labels other tools, and not this one."
    LabelUnmatched Warning "label-unmatched" "A table of labels matches no tool."
    LabelUnfitting Warning "label-unfitting" "A label names an argument that a tool does not have."
    PartTwice Warning "part-twice" "A part of a condition is repeated."
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
