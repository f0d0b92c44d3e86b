"""Statements sent to PostgreSQL past the driver's cursors: values come back as they went, errors leave all usable."""

from __future__ import annotations

import math
import struct

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from equipoise.store.libpq import WRITE, Connection, Statement, as_array, as_text

TEXTS = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])) | st.sampled_from(
    ["", "NULL", "null", "{}", '{"a","b"}', "a,b", '"', "\\", '\\"', "$1", " ", "\n", "é", "\U0001d6fc", "'", "--"]
)
WHOLE = st.integers(-(2**63), 2**63 - 1)
same_database = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)


@pytest.fixture
def connection(postgresql_url):
    with Connection.connect(postgresql_url, prepare_threshold=None) as connection:
        yield connection


def array_of(connection, kind, values):
    [[row]] = connection.send(Statement(f"SELECT $1::{kind}[]", as_array(values)))
    return row[0]


@same_database
@given(values=st.lists(st.none() | TEXTS, min_size=1))
def test_texts_come_back_as_they_went(connection, values):
    assert array_of(connection, "text", values) == values


@same_database
@given(values=st.lists(st.none() | WHOLE, min_size=1))
def test_whole_numbers_come_back_as_they_went(connection, values):
    assert array_of(connection, "bigint", values) == values


@same_database
@given(values=st.lists(st.none() | st.floats(), min_size=1))
def test_floats_come_back_to_the_bit(connection, values):
    found = array_of(connection, "float8", values)
    assert [_bits(value) for value in found] == [_bits(value) for value in values]


def _bits(value):
    return value if value is None else "nan" if math.isnan(value) else struct.pack("d", value)


@same_database
@given(value=st.none() | TEXTS)
def test_a_single_value_comes_back_as_it_went(connection, value):
    assert connection.send(Statement("SELECT $1::text", as_text(value))) == [[(value,)]]


def test_one_message_may_have_many_statements_and_begins_a_transaction(connection):
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    rows = connection.send(
        Statement("CREATE TABLE t (n integer)"),
        Statement("INSERT INTO t SELECT * FROM unnest($1::integer[])", as_array([3, 1, 2]), prepare=False),
        Statement("SELECT n FROM t ORDER BY n", prepare=False),
    )
    assert [list(row) for row in rows] == [[], [], [(1,), (2,), (3,)]]
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
    connection.rollback()
    assert connection.execute("SELECT to_regclass('t')").fetchone() == (None,)


def test_a_statement_is_prepared_once_and_outlives_a_rollback(connection):
    for _ in range(8):
        assert connection.send(Statement("SELECT 1 + $1::int", b"1"), Statement("SELECT 7")) == [[(2,)], [(7,)]]
        connection.rollback()
    rows = connection.execute("SELECT statement FROM pg_prepared_statements").fetchall()
    assert {row[0] for row in rows} == {WRITE.text, "SELECT 1 + $1::int", "SELECT 7"}


def test_the_first_error_is_raised_and_the_connection_goes_on(connection):
    wrong = [Statement("SELECT 1"), Statement("SELECT 1 / $1::int", b"0"), Statement("SELECT 2 + $1::int", b"5")]
    with pytest.raises(psycopg.errors.DivisionByZero, match="division by zero"):
        connection.send(*wrong)
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        connection.send(Statement("SELECT 3"))
    connection.rollback()
    # What came after the error was never prepared; it is now.
    assert connection.send(*wrong[2:]) == [[(7,)]]
    connection.rollback()
    assert connection.execute("SELECT 4").fetchone() == (4,)


def test_a_statement_that_is_no_sql_is_told(connection):
    with pytest.raises(psycopg.errors.SyntaxError):
        connection.send(Statement("SELEKT 1"))
    connection.rollback()
    assert connection.send(Statement("SELECT 1")) == [[(1,)]]


def test_a_message_larger_than_any_buffer_arrives_while_answers_come_back(connection):
    big = "x" * 1_000_000
    statements = [Statement("SELECT $1::text", as_text(f"{number}{big}")) for number in range(40)]
    rows = connection.send(*statements)
    assert [row[0][0][:2] for row in rows] == [f"{number}x"[:2] for number in range(40)]


def test_a_connection_that_is_ended_is_told_and_nothing_waits_for_ever(postgresql_url, connection):
    [[(own,)]] = connection.send(Statement("SELECT pg_backend_pid()"))
    with psycopg.connect(postgresql_url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", (own,))
        with pytest.raises(psycopg.OperationalError):
            connection.send(Statement("SELECT pg_sleep(10)"))
    assert connection.broken or connection.closed
