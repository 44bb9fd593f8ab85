//! The tools that a broker itself offers: finding tools, and extracting values from text.

use std::path::PathBuf;
use std::sync::Arc;

use airlock_core::search::model::Model;

use super::{BuildError, Builder};
use crate::embeddings_file;
use crate::extract::Extractor;

impl Builder {
    /// Lets scripts call `airlock.search` and `airlock.describe`, and also `airlock.extract` if the
    /// configuration has a command for it. No server can then have the name `airlock`.
    #[must_use]
    pub fn discovery(mut self, discovery: bool) -> Self {
        self.own.discovery = discovery;
        self
    }

    /// Sets the folder of a model2vec model, so that search also finds tools by similar meaning.
    #[must_use]
    pub fn embeddings(mut self, folder: impl Into<PathBuf>) -> Self {
        self.embeddings = Some(folder.into());
        self
    }

    /// Sets the extractor that reads values for scripts, which can then call `airlock.extract`. An
    /// `[extract]` command of the configuration takes precedence.
    #[must_use]
    pub fn extractor(mut self, extractor: impl Extractor + 'static) -> Self {
        self.own.extraction = true;
        self.extractor.get_or_insert(Arc::new(extractor));
        self
    }

    /// Lets scripts call `airlock.extract` although only some runs have an extractor:
    /// the runs whose [`RunContext`](crate::RunContext) contains one.
    #[must_use]
    pub fn extraction_by_context(mut self) -> Self {
        self.own.extraction = true;
        self
    }
}

pub(super) async fn read_embeddings(
    folder: Option<PathBuf>,
) -> Result<Option<Arc<Model>>, BuildError> {
    let Some(folder) = folder else {
        return Ok(None);
    };
    let reading = tokio::task::spawn_blocking(move || embeddings_file::read(&folder));
    let model = reading.await.map_err(|_| BuildError::Interrupted)?;
    model
        .map(|it| Some(Arc::new(it)))
        .map_err(BuildError::Embeddings)
}
