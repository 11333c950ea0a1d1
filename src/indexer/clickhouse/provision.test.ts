import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { planStatements, revokeStatements, roleOf, userStatements } from './provision.ts'
import { TEST_PLAN, TEST_USER } from './test-provision.ts'

describe('accounts on the operator’s ClickHouse', () => {
  test('a plan may read its views, and not the tables behind them', () => {
    const statements = planStatements(TEST_PLAN)
    const grants = statements.filter((statement) => statement.startsWith('GRANT'))
    assert.deepEqual(grants, [
      'GRANT SELECT ON chain.transactions TO sluice_reader_pro_1',
      'GRANT SELECT ON chain.coverage TO sluice_reader_pro_1',
    ])
    for (const statement of statements.filter((each) => /^(CREATE|ALTER) (ROLE|SETTINGS|QUOTA)/.test(each)))
      assert.match(statement, /^\w+ (ROLE|SETTINGS PROFILE|QUOTA) (IF NOT EXISTS )?sluice_/)
    assert.match(statements.join('\n'), /max_execution_time = 30 MIN 1 MAX 30 CHANGEABLE_IN_READONLY/)
    assert.match(statements.join('\n'), /max_result_bytes = (\d+) MIN 1 MAX \1 CHANGEABLE_IN_READONLY/)
    // `break` would also cut a result at the bytes of the plan.
    assert.match(statements.join('\n'), /result_overflow_mode = 'throw', limit = 0 CHANGEABLE_IN_READONLY,/)
    // The view of accounts reads one table several times; before 25.12 each read has a snapshot of its own by default.
    assert.match(statements.join('\n'), /enable_shared_storage_snapshot_in_query = 1,/)
    assert.equal(roleOf('pro-1'), 'sluice_reader_pro_1')
  })

  test('an account can log in from the gateways only, and no statement contains its password', () => {
    const statements = userStatements(TEST_USER)
    for (const statement of statements.slice(0, 2)) assert.match(statement, /HOST IP '10\.1\.0\.0\/24', '::1'/)
    assert.match(statements[0] as string, /IDENTIFIED WITH sha256_hash BY '[0-9a-f]{64}' SALT '\w{16}'/)
    assert.deepEqual(revokeStatements('u_abc'), ["KILL QUERY WHERE user = 'u_abc' ASYNC", 'DROP USER IF EXISTS u_abc'])
  })

  test('statements contain only names with the prefix', () => {
    for (const username of ['default', 'u_', "u_a'; DROP", 'u_a b', 'U_A', '']) {
      assert.throws(() => revokeStatements(username), RangeError, username)
      assert.throws(() => userStatements({ ...TEST_USER, username }), RangeError, username)
    }
    assert.throws(() => userStatements({ ...TEST_USER, hosts: [] }), RangeError)
    assert.throws(() => userStatements({ ...TEST_USER, hosts: ["1.1.1.1' OR"] }), RangeError)
    assert.throws(() => userStatements({ ...TEST_USER, sha256: 'secret' }), RangeError)
    assert.throws(() => planStatements({ ...TEST_PLAN, plan: 'a; b' }), RangeError)
    assert.throws(() => planStatements({ ...TEST_PLAN, tables: ['a.b'] }), RangeError)
    assert.throws(() => planStatements({ ...TEST_PLAN, rowsMax: Number.NaN }), RangeError)
  })
})
