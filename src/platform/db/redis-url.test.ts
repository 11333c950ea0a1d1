import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseRedisUrl } from './redis-url.ts'

test('reads host, port, TLS, user and database', () => {
  const location = { host: 'cache.example.com', port: 6379, tls: false, user: undefined, database: 0 }
  assert.deepEqual(parseRedisUrl('redis://cache.example.com'), location)
  assert.deepEqual(parseRedisUrl('redis://cache.example.com/'), location)
  assert.deepEqual(parseRedisUrl('rediss://us%40er@cache.example.com:6380/15'), {
    ...location,
    ...{ port: 6380, tls: true, user: 'us@er', database: 15 },
  })
  assert.equal(parseRedisUrl('redis://[::1]:7000').host, '::1')
})

test('parameters and a fragment have no effect, and no host is this machine', () => {
  const location = { host: 'h', port: 6379, tls: false, user: undefined, database: 2 }
  for (const url of ['redis://h/2?', 'redis://h/2#main', 'redis://h/2?family=4#main'])
    assert.deepEqual(parseRedisUrl(url), location, url)
  assert.deepEqual(parseRedisUrl('redis:///2'), { ...location, host: 'localhost' })
  assert.deepEqual(parseRedisUrl('redis://'), { ...location, host: 'localhost', database: 0 })
})

test('refuses what is no address, a password, and a database that is no number, without quoting them', () => {
  for (const [url, message] of [
    ['redis://u:hunter2@h', /contains a password/],
    ['redis://h:6379/cache', /database that is no number/],
    ['redis://h/-1', /database that is no number/],
    ['redis://h/1.5', /database that is no number/],
    ['redis://h/1/2', /database that is no number/],
    ['redis://h:70000', /port is no number up to 65535/],
    ['redis://h:port', /port is no number up to 65535/],
    ['redis://h:0', /port 0/],
    ['redis://h?db=3', /parameter db/],
    ['redis://h?password=hunter2', /parameter password/],
    ['redis://%zz@h', /user name/],
    ['http://h', /not a redis/],
    ['nonsense', /not a redis/],
  ] as const) {
    assert.throws(
      () => parseRedisUrl(url),
      (error: Error) =>
        message.test(error.message) &&
        !error.message.includes('hunter2') &&
        'code' in error &&
        error.code === 'config-invalid',
      url,
    )
  }
})
