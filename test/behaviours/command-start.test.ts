import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { ALONE, BARE_ENV, CLI, temporaryFolder } from '../support/cli/run.ts'

/** Prints the files that the process loaded. */
const LIST_LOADED = `import { registerHooks } from 'node:module'
const urls = []
registerHooks({ load: (url, context, next) => (urls.push(url), next(url, context)) })
process.on('exit', () => process.stderr.write('loaded ' + urls.join(' ')))`

test('a command loads neither the Redis library nor the printer of metrics', async () => {
  await using home = await temporaryFolder()
  for (const words of [['status'], ['customer', 'list'], ['doctor']]) {
    const { stderr } = spawnSync(
      process.execPath,
      ['--import', `data:text/javascript,${encodeURIComponent(LIST_LOADED)}`, CLI, ...words],
      { cwd: home.path, env: { ...BARE_ENV, ...ALONE }, encoding: 'utf8', timeout: 60_000 },
    )
    assert.match(stderr, /loaded \S*src\/cli\/main\.ts .*node_modules\/zod\//, words.join(' '))
    for (const library of ['@redis/client', 'prom-client', '@opentelemetry/api'])
      assert.ok(!stderr.includes(`/node_modules/${library}/`), `sluice ${words.join(' ')} loads ${library}`)
  }
})
