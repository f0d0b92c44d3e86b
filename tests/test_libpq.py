"""Statements sent to PostgreSQL past the driver's cursors: values come back as they went, errors leave all usable."""

from __future__ import annotations

import math
import struct

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from equipoise.store.connection import Connection
from equipoise.store.libpq import Statement, as_array, as_text, send

TEXTS = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])) | st.sampled_from(
    ["", "NULL", "null", "{}", '{"a","b"}', "a,b", '"', "\\", '\\"', "$1", " ", "\n", "é", "\U0001d6fc", "'", "--"]
)
WHOLE = st.integers(-(2**63), 2**63 - 1)
same_database = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)


@pytest.fixture
def connection(postgresql_url):
    with Connection.connect(postgresql_url, prepare_threshold=None) as connection:
        yield connection


@pytest.fixture
def info():
    return {}


def array_of(connection, info, kind, values):
    [[row]] = send(connection, info, [Statement(f"SELECT $1::{kind}[]", as_array(values))])
    return row[0]


@same_database
@given(values=st.lists(st.none() | TEXTS, min_size=1))
def test_texts_come_back_as_they_went(connection, info, values):
    assert array_of(connection, info, "text", values) == values


@same_database
@given(values=st.lists(st.none() | WHOLE, min_size=1))
def test_whole_numbers_come_back_as_they_went(connection, info, values):
    assert array_of(connection, info, "bigint", values) == values


@same_database
@given(values=st.lists(st.none() | st.floats(), min_size=1))
def test_floats_come_back_to_the_bit(connection, info, values):
    found = array_of(connection, info, "float8", values)
    assert [_bits(value) for value in found] == [_bits(value) for value in values]


def _bits(value):
    return value if value is None else "nan" if math.isnan(value) else struct.pack("d", value)


@same_database
@given(value=st.none() | TEXTS)
def test_a_single_value_comes_back_as_it_went(connection, info, value):
    assert send(connection, info, [Statement("SELECT $1::text", as_text(value))]) == [[(value,)]]


def test_one_message_may_have_many_statements_and_begins_a_transaction(connection, info):
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    rows = send(
        connection,
        info,
        [
            Statement("CREATE TABLE t (n integer)"),
            Statement("INSERT INTO t SELECT * FROM unnest($1::integer[])", as_array([3, 1, 2]), prepare=False),
            Statement("SELECT n FROM t ORDER BY n", prepare=False),
        ],
    )
    assert [list(row) for row in rows] == [[], [], [(1,), (2,), (3,)]]
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
    connection.rollback()
    assert connection.execute("SELECT to_regclass('t')").fetchone() == (None,)


def test_a_statement_is_prepared_once_and_outlives_a_rollback(connection, info):
    for _ in range(8):
        assert send(connection, info, [Statement("SELECT 1 + $1::int", b"1"), Statement("SELECT 7")]) == [
            [(2,)],
            [(7,)],
        ]
        connection.rollback()
    rows = connection.execute("SELECT statement FROM pg_prepared_statements").fetchall()
    assert {row[0] for row in rows} == {"BEGIN", "SELECT 1 + $1::int", "SELECT 7"}


def test_the_first_error_is_raised_and_the_connection_goes_on(connection, info):
    wrong = [Statement("SELECT 1"), Statement("SELECT 1 / $1::int", b"0"), Statement("SELECT 2 + $1::int", b"5")]
    with pytest.raises(psycopg.errors.DivisionByZero, match="division by zero"):
        send(connection, info, wrong)
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        send(connection, info, [Statement("SELECT 3")])
    connection.rollback()
    # What came after the error was never prepared; it is now.
    assert send(connection, info, wrong[2:]) == [[(7,)]]
    connection.rollback()
    assert connection.execute("SELECT 4").fetchone() == (4,)


def test_a_statement_that_is_no_sql_is_told(connection, info):
    with pytest.raises(psycopg.errors.SyntaxError):
        send(connection, info, [Statement("SELEKT 1")])
    connection.rollback()
    assert send(connection, info, [Statement("SELECT 1")]) == [[(1,)]]


def test_a_message_larger_than_any_buffer_arrives_while_answers_come_back(connection, info):
    big = "x" * 1_000_000
    statements = [Statement("SELECT $1::text", as_text(f"{number}{big}")) for number in range(40)]
    rows = send(connection, info, statements)
    assert [row[0][0][:2] for row in rows] == [f"{number}x"[:2] for number in range(40)]


def test_a_connection_that_is_ended_is_told_and_nothing_waits_for_ever(postgresql_url, connection, info):
    [[(own,)]] = send(connection, info, [Statement("SELECT pg_backend_pid()")])
    with psycopg.connect(postgresql_url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", (own,))
        with pytest.raises(psycopg.OperationalError):
            send(connection, info, [Statement("SELECT pg_sleep(10)")])
    assert connection.broken or connection.closed
