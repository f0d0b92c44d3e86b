"""Every store keeps the contract; SQLite files and PostgreSQL servers keep some promises of their own."""

from __future__ import annotations

import pytest

from equipoise.testing import StoreContract


class TestMemory(StoreContract):
    is_shared = False

    def new_url(self):
        return "memory:"


class TestSQLite(StoreContract):
    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path):
        self.directory = tmp_path

    def setup_method(self):
        """The directory is known only when fixtures have run."""

    @pytest.fixture(autouse=True)
    def _set_up(self, _directory):
        super().setup_method()

    def new_url(self):
        return f"sqlite:///{self.directory}/store.db"


class TestPostgreSQL(StoreContract):
    def setup_method(self):
        """The database is known only when fixtures have run."""

    @pytest.fixture(autouse=True)
    def _set_up(self, postgresql_url):
        self.empty_url = postgresql_url
        super().setup_method()

    def new_url(self):
        return self.empty_url
