//! The hooks that a client answers for a session, and their registrations for all sessions.

use crate::{
    ids::SessionId,
    protocol::{
        errors::Failure,
        types::{HookEvent, HookRegistration, HookTimeout, HooksInForce, HooksSetParams, OnFailure, SessionIds},
    },
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// The most sessions with a registration of their own.
const MOST_SESSIONS: usize = 10_000;

/// The hooks of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hooks {
    /// The hooks that the client answers.
    pub events: BTreeSet<HookEvent>,
    /// Time for an answer.
    pub timeout: Duration,
    /// After a hook that failed.
    pub on_failure: OnFailure,
}

impl Default for Hooks {
    fn default() -> Self {
        Self { events: BTreeSet::new(), timeout: HookTimeout::DEFAULT.duration(), on_failure: OnFailure::default() }
    }
}

impl From<HookRegistration> for Hooks {
    fn from(HookRegistration { events, timeout_ms, on_failure }: HookRegistration) -> Self {
        Self {
            events: events.into_iter().collect(),
            timeout: timeout_ms.unwrap_or(HookTimeout::DEFAULT).duration(),
            on_failure: on_failure.unwrap_or_default(),
        }
    }
}

impl Hooks {
    /// Whether the client answers this hook.
    #[must_use]
    pub fn answers(&self, event: HookEvent) -> bool {
        self.events.contains(&event)
    }

    /// Whether the client answers a hook of compactions.
    #[must_use]
    pub fn concerns_compaction(&self) -> bool {
        [HookEvent::SessionBeforeCompact, HookEvent::SessionCompacting, HookEvent::SessionCompactDraft]
            .into_iter()
            .any(|hook| self.answers(hook))
    }

    /// The hooks in force as clients see them. `None` where the client answers no hook.
    #[must_use]
    pub fn in_force(&self) -> Option<HooksInForce> {
        let timeout_ms = u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX);
        let events: Vec<_> = self.events.iter().copied().collect();
        (!events.is_empty()).then_some(HooksInForce { events, timeout_ms, on_failure: self.on_failure })
    }
}

/// The registrations of a client: the default one, and those of single sessions. A session without its own one uses the
/// default one.
#[derive(Default)]
pub struct Registrations {
    /// Changes with each registration.
    version: AtomicU64,
    registered: Mutex<Registered>,
}

#[derive(Default)]
struct Registered {
    general: Arc<Hooks>,
    sessions: HashMap<SessionId, Arc<Hooks>>,
}

impl Registered {
    fn set(&mut self, sessions: Option<&SessionIds>, registration: HookRegistration) -> Result<(), Failure> {
        let Some(sessions) = sessions else {
            self.general = Arc::new(registration.into());
            return Ok(());
        };
        if registration.events.is_empty() {
            sessions.iter().for_each(|id| drop(self.sessions.remove(id)));
            return Ok(());
        }
        let new = sessions.iter().filter(|id| !self.sessions.contains_key(*id)).count();
        let all = self.sessions.len() + new;
        if all > MOST_SESSIONS {
            let what = format!(
                "{all} sessions would have hooks of their own, and {MOST_SESSIONS} are the most; nothing was changed. \
                 Leave `sessionIds` out to register for all sessions, or remove registrations with `events: []`"
            );
            return Err(Failure::params("sessionIds", what));
        }
        let hooks = Arc::new(Hooks::from(registration));
        self.sessions.extend(sessions.iter().map(|id| (id.clone(), hooks.clone())));
        Ok(())
    }
}

impl Registrations {
    /// The number of changes.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    /// The hooks of a session.
    #[must_use]
    pub fn of(&self, session: &SessionId) -> Arc<Hooks> {
        let registered = self.lock();
        registered.sessions.get(session).unwrap_or(&registered.general).clone()
    }

    /// The registration of this session alone.
    #[must_use]
    pub fn own(&self, session: &SessionId) -> Option<Arc<Hooks>> {
        self.lock().sessions.get(session).cloned()
    }

    /// Replaces the default registration.
    pub fn set_default(&self, registration: HookRegistration) {
        self.lock().general = Arc::new(registration.into());
        self.changed();
    }

    /// Replaces a registration, or removes it where it has no events. `answer` is called before any session can know of it,
    /// so the answer precedes the first request of a hook. It gets an error where too many sessions would have a
    /// registration. Nothing changes then.
    pub fn set(&self, params: HooksSetParams, answer: impl FnOnce(Result<(), Failure>)) {
        let HooksSetParams { events, session_ids, timeout_ms, on_failure } = params;
        let mut registered = self.lock();
        let set = registered.set(session_ids.as_ref(), HookRegistration { events, timeout_ms, on_failure });
        answer(set);
        self.changed();
    }

    /// Removes the registration of a session that is gone for good. A registration that came later stays.
    pub fn forget(&self, session: &SessionId, own: Option<&Arc<Hooks>>) {
        let Some(own) = own else { return };
        let mut registered = self.lock();
        if registered.sessions.get(session).is_some_and(|now| Arc::ptr_eq(now, own)) {
            registered.sessions.remove(session);
            drop(registered);
            self.changed();
        }
    }

    fn changed(&self) {
        self.version.fetch_add(1, Ordering::SeqCst);
    }

    fn lock(&self) -> MutexGuard<'_, Registered> {
        self.registered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use HookEvent::{SessionBeforeCompact, SessionBeforeTree, SessionCompacting};
    use serde_json::{Value, json};

    fn set(registrations: &Registrations, params: Value) -> Result<(), Failure> {
        let mut answered = Ok(());
        registrations.set(serde_json::from_value(params).expect("params"), |answer| answered = answer);
        answered
    }

    #[test]
    fn hooks_of_compactions_are_told_from_those_of_trees() {
        for (events, concerns) in [
            (vec![], false),
            (vec![SessionBeforeTree], false),
            (vec![SessionBeforeCompact], true),
            (vec![SessionBeforeTree, SessionCompacting], true),
        ] {
            let hooks = Hooks::from(HookRegistration { events: events.clone(), ..HookRegistration::default() });
            assert_eq!(hooks.concerns_compaction(), concerns, "{events:?}");
            assert_eq!(hooks.in_force().is_some(), !events.is_empty(), "{events:?}");
        }
        assert_eq!(Hooks::default().timeout, Duration::from_secs(30));
    }

    #[test]
    fn a_session_uses_its_own_registration_and_else_the_default_one() {
        let registrations = Registrations::default();
        let (one, two) = (SessionId::from("one"), SessionId::from("two"));
        let events = |id: &SessionId| registrations.of(id).events.iter().copied().collect::<Vec<_>>();
        set(&registrations, json!({"events": ["session_compacting"]})).expect("registered");
        assert_eq!((events(&one), events(&two)), (vec![SessionCompacting], vec![SessionCompacting]));
        let own = json!({"events": ["session_before_compact"], "sessionIds": ["one"], "timeoutMs": 100});
        set(&registrations, own).expect("registered");
        assert_eq!((events(&one), events(&two)), (vec![SessionBeforeCompact], vec![SessionCompacting]));
        assert_eq!(registrations.of(&one).timeout, Duration::from_millis(100));
        // The default registration changes no session that has its own one.
        set(&registrations, json!({"events": []})).expect("removed");
        assert_eq!((events(&one), events(&two)), (vec![SessionBeforeCompact], vec![]));
        set(&registrations, json!({"events": [], "sessionIds": ["one", "two"]})).expect("removed");
        assert_eq!((events(&one), registrations.own(&one)), (vec![], None));
    }

    #[test]
    fn each_change_has_a_version_and_a_deleted_session_takes_its_own_registration_along() {
        let registrations = Registrations::default();
        let id = SessionId::from("one");
        let register = || set(&registrations, json!({"events": ["session_compacting"], "sessionIds": ["one"]}));
        register().expect("registered");
        let (first, version) = (registrations.own(&id), registrations.version());
        register().expect("registered");
        assert!(registrations.version() > version);
        registrations.forget(&id, first.as_ref());
        assert!(registrations.own(&id).is_some(), "a registration behind the delete stays");
        let version = registrations.version();
        registrations.forget(&id, registrations.own(&id).as_ref());
        assert_eq!((registrations.own(&id), registrations.version() > version), (None, true));
    }

    #[test]
    fn a_registration_is_answered_before_a_session_knows_of_it() {
        let registrations = Registrations::default();
        let params = json!({"events": ["session_compacting"]});
        registrations.set(serde_json::from_value(params).expect("params"), |answer| {
            answer.expect("registered");
            assert_eq!(registrations.version(), 0);
            assert!(registrations.registered.try_lock().is_err(), "a session waits");
        });
        assert!(registrations.version() > 0 && registrations.of(&"one".into()).answers(SessionCompacting));
    }

    #[test]
    fn so_many_sessions_have_a_registration_and_no_more() {
        let registrations = Registrations::default();
        let named = |from: usize, to: usize| (from..to).map(|at| format!("s{at}")).collect::<Vec<_>>();
        let register =
            |ids: Vec<String>| set(&registrations, json!({"events": ["session_compacting"], "sessionIds": ids}));
        register(named(0, MOST_SESSIONS - 1)).expect("room");
        let failure = register(named(MOST_SESSIONS - 2, MOST_SESSIONS + 1)).expect_err("no room for two");
        assert_eq!(failure.data().rest["path"], "sessionIds");
        assert_eq!(registrations.own(&format!("s{MOST_SESSIONS}").into()), None, "nothing was changed");
        register(named(MOST_SESSIONS - 2, MOST_SESSIONS)).expect("room for one");
        register(named(0, 5)).expect("no new session");
        set(&registrations, json!({"events": [], "sessionIds": ["s3"]})).expect("removed");
        register(named(MOST_SESSIONS, MOST_SESSIONS + 1)).expect("room again");
    }
}
