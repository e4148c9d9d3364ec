//! Child runs: one, or many with a limit.

use engine_rules::context::{ChildDef, ChildEnd, ChildStart, Interrupt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{EngineContext, operator};

impl EngineContext {
    pub(super) async fn one_child<I, O>(&mut self, def: &ChildDef<I, O>, _: &ChildStart<I>) -> Result<O, Interrupt>
    where
        I: Serialize + Sync,
        O: Serialize + DeserializeOwned + Send,
    {
        let failure = operator("engine.no_children_yet", def.name.to_owned(), "");
        Err(self.block(self.new_write(), failure, None).await)
    }

    pub(super) async fn all_children<I, O>(
        &mut self,
        def: &ChildDef<I, O>,
        _: &[ChildStart<I>],
        _: u32,
    ) -> Result<Vec<ChildEnd<O>>, Interrupt>
    where
        I: Serialize + Sync,
        O: Serialize + DeserializeOwned + Send,
    {
        let failure = operator("engine.no_children_yet", def.name.to_owned(), "");
        Err(self.block(self.new_write(), failure, None).await)
    }
}
