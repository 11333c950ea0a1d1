import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parsePostgresUrl, printPostgresPlace } from './postgres-url.ts'

test('reads host, port, user and database; TLS is verified over a network and off on the same machine', () => {
  const place = {
    host: 'db.example.com',
    port: 5432,
    user: 'sluice',
    database: 'sluice',
    tls: 'verify-full',
    caFile: undefined,
  }
  assert.deepEqual(parsePostgresUrl('postgres://sluice@db.example.com/sluice'), place)
  assert.deepEqual(parsePostgresUrl('postgresql://sluice@db.example.com:5432/sluice?sslmode=require'), {
    ...place,
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
  const place = parsePostgresUrl('postgres://sluice@/sluice?host=/var/run/postgresql')
  assert.deepEqual([place.host, place.database, place.tls], ['/var/run/postgresql', 'sluice', 'disable'])
})

test('refuses a password, a missing part and an unknown parameter, without showing what it was given', () => {
  for (const [url, says] of [
    ['postgres://u:hunter2@h/d', /contains a password/],
    ['postgres://h/d', /no user/],
    ['postgres://u@h/', /no database/],
    ['mysql://u@h/d', /not a postgres/],
    ['nonsense', /not a postgres/],
    ['postgres://u@h/d?sslmode=maybe', /sslmode/],
    ['postgres://u@h/d?options=-cfsync', /unknown parameter "options"/],
  ] as const) {
    assert.throws(
      () => parsePostgresUrl(url),
      (error: Error) =>
        says.test(error.message) &&
        !error.message.includes('hunter2') &&
        'code' in error &&
        error.code === 'config-invalid',
      url,
    )
  }
})

test('names a database without user and password', () => {
  assert.equal(printPostgresPlace(parsePostgresUrl('postgres://u@[::1]:6000/d')), 'postgres://[::1]:6000/d')
})
