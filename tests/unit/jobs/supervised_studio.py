"""A supervisor over doubles, for tests of what it does tick by tick."""

from jobs_doubles import FakeExecutor, MemoryStore, machine, new_job

from ziggurat.jobs import Supervisor


class Studio:
    """A supervisor over doubles; another one takes its place where a test says so."""

    def __init__(self, workspace, retention=None, executor=None, **resources):
        self.retention = retention
        self.workspace = workspace
        self.store = MemoryStore()
        self.executor = executor or FakeExecutor(machines=[machine(**({"cpu_slots": 2} | resources))])
        self.supervisor = self._new()

    def _new(self):
        return Supervisor(self.store, self.executor, self.workspace, retention=self.retention)

    @property
    def machine(self):
        return self.executor.machines[0]

    @machine.setter
    def machine(self, resources):
        self.executor.machines = [resources]

    def again(self):
        self.supervisor.close()
        self.supervisor = self._new()

    def tick(self, passed_s=1.0):
        self.executor.now += passed_s
        self.supervisor.tick(self.executor.now)

    def submit(self, job_id, /, **changes):
        return self.supervisor.submit(new_job(self.workspace, job_id, **changes))

    def folder(self, name):
        return self.workspace / "jobs" / name

    def job(self, name):
        return self.store.jobs.get(name)

    def states(self):
        return {name: job.state for name, job in self.store.jobs.rows.items()}
