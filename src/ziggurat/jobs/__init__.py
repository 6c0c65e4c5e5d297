"""Jobs from submission to end: state machine, scheduling plan, executors, and supervisor."""

from ziggurat.jobs.disk import Retention
from ziggurat.jobs.escalation import StopGrace
from ziggurat.jobs.executor import Ended, Executor, ExecutorOptions, Running
from ziggurat.jobs.local_executor import LocalExecutor
from ziggurat.jobs.plan import Waiting
from ziggurat.jobs.pubsub import EventBus, Notice, Subscription
from ziggurat.jobs.several_executors import SeveralExecutors
from ziggurat.jobs.state_machine import possible_events
from ziggurat.jobs.supervisor import Supervisor

__all__ = [
    "Ended",
    "EventBus",
    "Executor",
    "ExecutorOptions",
    "LocalExecutor",
    "Notice",
    "Retention",
    "Running",
    "SeveralExecutors",
    "StopGrace",
    "Subscription",
    "Supervisor",
    "Waiting",
    "possible_events",
]
