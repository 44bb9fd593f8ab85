//! The methods of MCP that airlock answers as a server.

/// The method of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Method {
    Initialize,
    Discover,
    Ping,
    SetLogLevel,
    ListTools,
    CallTool,
    ListGroups,
    ListTags,
    ListResources,
    ListResourceTemplates,
    ReadResource,
    SubscribeResource,
    UnsubscribeResource,
    ListPrompts,
    GetPrompt,
    Complete,
    Listen,
    Unknown(String),
}

static NAMES: [(&str, Method); 17] = [
    ("initialize", Method::Initialize),
    ("server/discover", Method::Discover),
    ("ping", Method::Ping),
    ("logging/setLevel", Method::SetLogLevel),
    ("tools/list", Method::ListTools),
    ("tools/call", Method::CallTool),
    ("groups/list", Method::ListGroups),
    ("tags/list", Method::ListTags),
    ("resources/list", Method::ListResources),
    ("resources/templates/list", Method::ListResourceTemplates),
    ("resources/read", Method::ReadResource),
    ("resources/subscribe", Method::SubscribeResource),
    ("resources/unsubscribe", Method::UnsubscribeResource),
    ("prompts/list", Method::ListPrompts),
    ("prompts/get", Method::GetPrompt),
    ("completion/complete", Method::Complete),
    ("subscriptions/listen", Method::Listen),
];

impl Method {
    pub(super) fn parse(name: &str) -> Self {
        let known = NAMES.iter().find(|(known, _)| *known == name);
        known.map_or_else(|| Self::Unknown(name.to_owned()), |(_, it)| it.clone())
    }

    pub(super) fn as_str(&self) -> &str {
        if let Self::Unknown(name) = self {
            return name;
        }
        let known = NAMES.iter().find(|(_, it)| it == self);
        known.map_or("", |(name, _)| name)
    }

    /// Returns the parameter that the header `Mcp-Name` repeats.
    pub(super) fn name_param(&self) -> Option<&'static str> {
        match self {
            Self::CallTool | Self::GetPrompt => Some("name"),
            Self::ReadResource => Some("uri"),
            _ => None,
        }
    }
}
