//! What scripts are told about tools: what hosts are told, without a round trip.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::desk::Desk;
use super::meta;
use super::session::HostSession;
use super::settings::{Disclosure, Mode, Settings};
use super::shelf::Shelf;
use crate::broker::{Broker, Described, Librarian};

/// For the scripts of one host's session: what they read is disclosed in it.
pub(super) struct InSession {
    pub(super) desk: Desk,
    pub(super) session: Arc<HostSession>,
}

/// For a run without a session; the search is made when it is first asked.
struct OfBroker {
    broker: Broker,
    shelf: OnceLock<Shelf>,
}

pub(crate) fn of(broker: &Broker) -> Arc<dyn Librarian> {
    Arc::new(OfBroker {
        broker: broker.clone(),
        shelf: OnceLock::new(),
    })
}

impl InSession {
    fn shelf(&self) -> Result<Arc<Shelf>, String> {
        self.desk.shelf_now().ok_or("the broker is gone".to_owned())
    }
}

impl Librarian for InSession {
    fn search(&self, args: &Map<String, Value>) -> Result<Value, String> {
        meta::search_in_script(&*self.shelf()?, args)
    }

    fn describe(&self, args: &Map<String, Value>) -> Result<Described, String> {
        let shelf = self.shelf()?;
        meta::describe_in_script(args, |wanted| {
            meta::disclose(&self.desk, &shelf, &self.session, wanted)
        })
    }
}

impl OfBroker {
    fn shelf(&self) -> &Shelf {
        self.shelf.get_or_init(|| {
            // No list of tools is wanted.
            let settings = Settings {
                mode: Mode::Stable,
                disclosure: Disclosure::Progressive,
                ..Settings::default()
            };
            Shelf::new(self.broker.clone(), &settings)
        })
    }
}

impl Librarian for OfBroker {
    fn search(&self, args: &Map<String, Value>) -> Result<Value, String> {
        meta::search_in_script(self.shelf(), args)
    }

    fn describe(&self, args: &Map<String, Value>) -> Result<Described, String> {
        let shelf = self.shelf();
        meta::describe_in_script(args, |wanted| Ok(meta::look_up(shelf, wanted)))
    }
}
