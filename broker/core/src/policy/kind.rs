//! Every kind of finding there is: its word, how grave it is, and what it is
//! about. `docs/policy-check.md` has a line for each.

use serde::{Serialize, Serializer};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// No run starts with it.
    Error,
    /// It can be loaded, and probably means something else than its author thinks.
    Warning,
}

macro_rules! kinds {
    ($($kind:ident $severity:ident $word:literal $about:literal)*) => {
        /// What is wrong with a rule. Its word is stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind { $($kind),* }

        impl Kind {
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$kind => $word),* }
            }

            /// In one sentence, whatever the rule.
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
    Unreadable Error "unreadable" "A rule is not Cedar."
    TooDeep Error "too-deep" "A rule nests deeper, or joins more, than anybody reads."
    TooMany Error "too-many" "There are more rules than anybody reviews."
    FileUnclear Error "file-unclear" "The rules of a file are others when it is read as a whole."
    AnnotationUnknown Error "annotation-unknown" "An annotation that there is not."
    AnnotationMissing Error "annotation-missing" "A rule without an id, an owner or a reason."
    AnnotationUnusable Error "annotation-unusable" "An annotation is empty or too long."
    IdTaken Error "id-taken" "Two rules have the same id."
    PromptMissing Error "prompt-missing" "A rule asks, and does not say what."
    PromptIdle Error "prompt-idle" "A question that is never asked."
    TighteningPermits Error "tightening-permits" "A rule permits in a folder that may only tighten."
    PrincipalOrResource Error "principal-or-resource" "A rule constrains `principal` or `resource`, which calls do not have."
    FileWordPermits Error "file-word-permits" "A rule permits by what a tool file says."
    ContextAsValue Error "context-as-value" "The whole context is used as a value."
    ApprovalMisused Error "approval-misused" "An approval takes, or is no level."
    LabelsMisused Error "labels-misused" "What has read more may do more."
    LabelUnknown Error "label-unknown" "A label that there is not."
    LabelsBesideSum Error "labels-beside-sum" "A label can take away the denial that an error is."
    RawText Error "raw-text" "A path or an address is compared as text."
    ToolUnknown Error "tool-unknown" "A tool or a group that there is not."
    ServerUnknown Error "server-unknown" "A server whose name is nearly another's."
    GroupAsTool Error "group-as-tool" "A group where a tool is meant, which no call is."
    ArgumentUnknown Error "argument-unknown" "An argument that no tool of the rule has."
    FactUnknown Error "fact-unknown" "A member of the context that there is not."
    OptionalUnguarded Error "optional-unguarded" "Something that may be absent is read without asking for it."
    ArgumentUnmodelled Error "argument-unmodelled" "An argument is read that rules cannot see."
    TypeMismatch Error "type-mismatch" "Two things are compared that are never alike."
    Unusable Error "unusable" "The rules cannot be checked against the tools."
    GrantUnusable Error "grant-unusable" "A file of grants, or one of them, cannot be used."
    GrantWithoutExpiry Error "grant-without-expiry" "A grant that never ends."

    GrantExpired Warning "grant-expired" "A grant that has ended."
    PermitUnscoped Warning "permit-unscoped" "A permit for every tool that nothing bounds."
    ForbidEverything Warning "forbid-everything" "A forbid that leaves nothing to be done."
    DestroysUnasked Warning "destroys-unasked" "A destructive tool is permitted without asking."
    RuleShadowed Warning "rule-shadowed" "Another rule does all that this one does."
    RuleDead Warning "rule-dead" "A condition that no call meets."
    RuleOverruled Warning "rule-overruled" "A forbid takes all that this permit gives."
    MayOverflow Warning "may-overflow" "A sum that can fail, and so denies."
    EmptySetPasses Warning "empty-set-passes" "All members of a set are as they should be, and there are none."
    SomeForAll Warning "some-for-all" "One destination or path is right, and the others may be anything."
    AllForSome Warning "all-for-some" "One more destination or path, and the forbid does not hold."
    AbsentGives Warning "absent-gives" "What is not known gives."
    PatternAsText Warning "pattern-as-text" "A pattern is compared as text, and matches nothing."
    PatternIdle Warning "pattern-idle" "A pattern without a wildcard."
    HostPattern Warning "host-pattern" "A host or a domain is recognised by the end of a text."
    ValueMisspelt Warning "value-misspelt" "A value that this fact never has."
    RootUnknown Warning "root-unknown" "A root that the configuration does not have."
    ValueUnknown Warning "value-unknown" "A value that the tool's description does not list."
    OutOfRange Warning "out-of-range" "A number that this fact never reaches."
    AlwaysTrue Warning "always-true" "A part of a condition that every call meets."
    PartTwice Warning "part-twice" "A part of a condition is repeated."
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
