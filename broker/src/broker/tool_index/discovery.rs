//! Answers questions about tools for scripts without a session.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::details::{describe, look_up};
use super::search::search_now;
use super::{DeclareLimit, ToolIndex};
use crate::broker::{Broker, DescribedTools, ToolDiscovery};

/// Tool discovery for a run without a session. The index is built for the first question.
struct BrokerDiscovery {
    broker: Broker,
    tool_index: OnceLock<ToolIndex>,
}

pub(crate) fn for_broker(broker: &Broker) -> Arc<dyn ToolDiscovery> {
    Arc::new(BrokerDiscovery {
        broker: broker.clone(),
        tool_index: OnceLock::new(),
    })
}

impl BrokerDiscovery {
    fn tool_index(&self) -> &ToolIndex {
        let new = || ToolIndex::new(self.broker.clone(), DeclareLimit::Nothing);
        self.tool_index.get_or_init(new)
    }
}

impl ToolDiscovery for BrokerDiscovery {
    fn search(&self, args: &Map<String, Value>) -> Result<Value, String> {
        search_now(self.tool_index(), args, &BTreeSet::new()).map(|found| found.structured())
    }

    fn describe(&self, args: &Map<String, Value>) -> Result<DescribedTools, String> {
        describe(args, |wanted| {
            Ok(look_up(self.tool_index(), wanted, &BTreeSet::new()))
        })
    }
}
