"""The operating system refuses threads to the server."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

from harness import OwnServerTest, Target, wait_until

# Makes pthread_create fail while the file exists.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
  static int (*original)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  const char *file = getenv("REFUSE_THREADS_WHILE");
  if (file != NULL && access(file, F_OK) == 0) return EAGAIN;
  if (original == NULL) original = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create");
  return original(thread, attributes, body, argument);
}
"""
SLEEPERS = 30


class ThreadShortage(OwnServerTest):
    """A statement that sleeps needs a thread of its own, so many need many."""

    @classmethod
    def setUpClass(cls):
        compiler = shutil.which("cc")
        if compiler is None:
            raise unittest.SkipTest("needs a C compiler")
        folder = pathlib.Path(tempfile.mkdtemp(prefix="rtp.shim."))
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.flag = folder / "refuse"
        (folder / "shim.c").write_text(SHIM, encoding="ascii")
        subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "shim.so", folder / "shim.c", "-ldl"], check=True)
        cls.environment = {"LD_PRELOAD": str(folder / "shim.so"), "REFUSE_THREADS_WHILE": str(cls.flag)}
        super().setUpClass()

    def test_server_goes_on_says_so_and_recovers(self):
        self.addCleanup(self.flag.unlink, missing_ok=True)
        sessions = self.connect_many(SLEEPERS)
        other = self.connect(Target.unix(), timeout=60)
        self.flag.touch()
        for session in sessions:
            session.send_query("SELECT SLEEP(0.02)")
        # Those that exist do the work of all.
        self.read_from_all(sessions)
        self.assertEqual(other.value("SELECT 1"), "1")
        wait_until(lambda: self.log_lines("The operating system refused a new thread") > 0, "the error log says so")
        # Logins go on too.
        Target.connect(timeout=60).quit()
        self.flag.unlink()
        for session in sessions:
            session.send_query("SELECT SLEEP(1)")
        count = "SELECT COUNT(*) FROM performance_schema.processlist WHERE state = 'User sleep'"
        with Target.connect(Target.admin()) as watcher:
            wait_until(lambda: watcher.value(count) == str(SLEEPERS), "all sleep at the same time")
        self.read_from_all(sessions)
