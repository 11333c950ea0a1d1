import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parsePostgresUrl, printPostgresLocation } from './postgres-url.ts'

test('reads host, port, user and database; TLS is verified over a network and off on the same machine', () => {
  const position = {
    host: 'db.example.com',
    port: 5432,
    user: 'sluice',
    database: 'sluice',
    tls: 'verify-full',
    caFile: undefined,
  }
  assert.deepEqual(parsePostgresUrl('postgres://sluice@db.example.com/sluice'), position)
  assert.deepEqual(parsePostgresUrl('postgresql://sluice@db.example.com:5432/sluice?sslmode=require'), {
    ...position,
    tls: 'require',
  })
  assert.equal(parsePostgresUrl('postgres://u@127.0.0.1:6000/d').tls, 'disable')
  assert.equal(parsePostgresUrl('postgres://u@[::1]/d').tls, 'disable')
  assert.equal(parsePostgresUrl('postgres://u@[::1]/d').host, '::1')
  assert.equal(parsePostgresUrl('postgres://u@10.0.0.5/d?sslmode=disable').tls, 'disable')
  assert.equal(parsePostgresUrl('postgres://u@h/d?sslrootcert=/etc/ca.pem').caFile, '/etc/ca.pem')
  assert.equal(parsePostgresUrl('postgres://us%40er@h/d%2Fb').user, 'us@er')
})

test('reads the folder of a Unix socket', () => {
  const position = parsePostgresUrl('postgres://sluice@/sluice?host=/var/run/postgresql')
  assert.deepEqual([position.host, position.database, position.tls], ['/var/run/postgresql', 'sluice', 'disable'])
})

test('refuses a password, a missing part and an unknown parameter, without quoting them', () => {
  for (const [url, message] of [
    ['postgres://u:hunter2@h/d', /contains a password/],
    ['postgres://h/d', /no user/],
    ['postgres://u@h/', /no database/],
    ['mysql://u@h/d', /not a postgres/],
    ['nonsense', /not a postgres/],
    ['postgres://u@h:70000/d', /port is no number up to 65535/],
    ['postgres://u%zz@h/d', /begins no character/],
    ['postgres://u@h/%zz', /begins no character/],
    ['postgres://u@a,b/d', /names several hosts/],
    ['postgres://u@a:5432,b:5433/d', /names several hosts/],
    ['postgres://u@/d?host=a,b', /names several hosts/],
    ['postgres://u@h/d?sslmode=maybe', /sslmode/],
    ['postgres://u@h/d?options=-cfsync', /unknown parameter "options"/],
  ] as const) {
    assert.throws(
      () => parsePostgresUrl(url),
      (error: Error) =>
        message.test(error.message) &&
        !error.message.includes('hunter2') &&
        'code' in error &&
        error.code === 'config-invalid',
      url,
    )
  }
})

test('several hosts are refused with what to give instead; a comma in a user or the folder of a socket is no second host', () => {
  assert.throws(() => parsePostgresUrl('postgres://u@a,b/d'), { fix: /virtual address, a DNS name or a proxy/ })
  assert.equal(parsePostgresUrl('postgres://u,v@h/d').host, 'h')
  assert.equal(parsePostgresUrl('postgres://u@/d?host=/run/a,b').host, '/run/a,b')
})

test('names a database without user and password', () => {
  assert.equal(printPostgresLocation(parsePostgresUrl('postgres://u@[::1]:6000/d')), 'postgres://[::1]:6000/d')
})
