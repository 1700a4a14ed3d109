/** The metric store on SQLite, in files of others. */

import { DatabaseSync } from "node:sqlite";
import { LeatError } from "../../../core/error.ts";
import { openSqliteMetrics } from "../../../platform/offload/sqlite_metrics.ts";
import { assertEquals, assertStringIncludes, assertThrows } from "../../assert.ts";
import { inFolder } from "../../lib/temp_folder.ts";

/** Rows that never end. */
const ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)";

Deno.test("openSqliteMetrics opens again what it has made", () =>
  inFolder((folder) => {
    const path = `${folder}/metrics`;
    {
      using store = openSqliteMetrics(path);
      store.set("key", { Gthp: 1 });
    }
    using store = openSqliteMetrics(path);
    assertEquals(store.get("key"), { Gthp: 1 });
    assertEquals(store.get("other"), undefined);
    return Promise.resolve();
  }));

Deno.test("openSqliteMetrics opens a store that another process creates meanwhile", () =>
  inFolder((folder) => {
    const path = `${folder}/metrics`;
    const { exec } = DatabaseSync.prototype;
    // The other one comes when this one has found no table and is about to create it.
    DatabaseSync.prototype.exec = function (sql) {
      if (sql.startsWith("BEGIN")) {
        DatabaseSync.prototype.exec = exec;
        using other = openSqliteMetrics(path);
        other.set("key", { Gthp: 1 });
      }
      exec.call(this, sql);
    };
    try {
      using store = openSqliteMetrics(path);
      assertEquals(store.get("key"), { Gthp: 1 });
    } finally {
      DatabaseSync.prototype.exec = exec;
    }
    return Promise.resolve();
  }));

Deno.test("openSqliteMetrics runs no SQL of whoever made its file: other tables, views and triggers are refused", () =>
  inFolder(async (folder) => {
    const path = `${folder}/metrics`;
    for (
      const sql of [
        `DROP TABLE metric; CREATE VIEW metric AS ${ENDLESS} SELECT 'key' AS key, '1' AS value FROM c WHERE x < 0`,
        "DROP TABLE metric; CREATE VIEW metric AS SELECT 'key' AS key, hex(zeroblob(400000000)) AS value",
        `CREATE TABLE more (a); CREATE TRIGGER t AFTER INSERT ON metric BEGIN INSERT INTO more ${ENDLESS} SELECT x FROM c; END`,
        "DROP TABLE metric; CREATE TABLE metric (key TEXT PRIMARY KEY, value TEXT AS (hex(zeroblob(400000000)))) STRICT",
        "CREATE INDEX more ON metric (hex(value))",
      ]
    ) {
      openSqliteMetrics(path)[Symbol.dispose]();
      const database = new DatabaseSync(path);
      database.exec(sql);
      database.close();
      const error = assertThrows(() => openSqliteMetrics(path), LeatError);
      assertEquals(error.code, "failed_precondition");
      assertStringIncludes(error.message, path);
      assertStringIncludes(error.message, "remove it");
      await Deno.remove(path);
    }
  }));
