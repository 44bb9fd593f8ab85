//! What a broker offers of its own: finding tools, and having values read.

use std::path::PathBuf;
use std::sync::Arc;

use airlock_core::search::model::Model;

use super::{BuildError, Builder};
use crate::embeddings_file;
use crate::extract::Extractor;

impl Builder {
    /// Scripts then find `airlock.search` and `airlock.describe`, and `airlock.extract` where the
    /// configuration has a command for it; and no server can be called `airlock`.
    #[must_use]
    pub fn discovery(mut self, discovery: bool) -> Self {
        self.own.discovery = discovery;
        self
    }

    /// The folder of a model2vec model, by which search also knows words of one meaning.
    #[must_use]
    pub fn embeddings(mut self, folder: impl Into<PathBuf>) -> Self {
        self.embeddings = Some(folder.into());
        self
    }

    /// Who reads values for scripts, which then find `airlock.extract`. An `[extract]` command of
    /// the configuration comes before.
    #[must_use]
    pub fn extractor(mut self, extractor: impl Extractor + 'static) -> Self {
        self.own.extraction = true;
        self.extractor.get_or_insert(Arc::new(extractor));
        self
    }

    /// Scripts find `airlock.extract` although only some runs have somebody who reads values:
    /// those whose [`Seat`](crate::Seat) brings one.
    #[must_use]
    pub fn extraction_by_seat(mut self) -> Self {
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
