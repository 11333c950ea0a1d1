import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { sluice, temporaryFolder } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'

test('a token and a database password appear once and are found nowhere afterwards', async () => {
  await using home = await temporaryFolder()
  const run = (...words: string[]) => sluice(words, { cwd: home.path })
  await using running = serve({ cwd: home.path })
  await running.line(/"msg":"started"/)
  const demo = secretsIn(running.stdout())
  assert.equal(demo.length, 2, 'the demo card shows one token and one password')

  await run('customer', 'add', 'acme')
  const created = await run(
    'sub',
    'create',
    'acme-prod',
    '--customer',
    'acme',
    '--products',
    'bundle,indexer',
    '--print-token',
  )
  assert.equal(created.code, 0, created.stderr)
  const [token = '', password = ''] = secretsIn(created.stdout)
  assert.match(token, /^slc_[0-9A-Za-z]{38}$/)
  assert.equal(created.stdout.split(token).length - 1 >= 1, true)

  const later = await Promise.all([
    run('sub', 'show', 'acme-prod'),
    run('sub', 'show', 'acme-prod', '--json'),
    run('token', 'list', '-o', 'json'),
    run('audit', 'tail', '--json'),
    run('config', 'show'),
    run('doctor'),
    run('status', '--json'),
    // The token itself as an argument of a command that fails: the error must not repeat it.
    run('sub', 'show', token),
  ])
  const rotated = await run('token', 'rotate', 'acme-prod', '--yes', '--out', 'new-token.txt')
  assert.equal(rotated.code, 0, rotated.stderr)
  assert.match(readFileSync(join(home.path, 'new-token.txt'), 'utf8'), /^slc_[0-9A-Za-z]{38}\n$/)

  const positions: [string, string][] = [
    ...filesUnder(join(home.path, '.sluice')).map((path): [string, string] => [path, readFileSync(path, 'latin1')]),
    ...processLines(),
    ['log of serve after the card', running.stdout().replace(cardOf(running.stdout()), '')],
    ['stderr of serve', running.stderr()],
    ['stderr of sub create', created.stderr],
    ...later.map((result, at): [string, string] => [`command ${at}`, result.stdout + result.stderr]),
    ['token rotate', rotated.stdout + rotated.stderr],
  ]
  assert.ok(positions.length > 15, 'there is text to search')
  for (const secret of [...demo, token, password]) {
    assert.ok(secret.length >= 32)
    for (const [position, text] of positions) assert.ok(!text.includes(secret), `a secret is in ${position}`)
  }
})

test('without a terminal a secret is not created unless it can be shown', async () => {
  await using home = await temporaryFolder()
  const run = (...words: string[]) => sluice(words, { cwd: home.path })
  await run('customer', 'add', 'acme')
  const refused = await run('sub', 'create', 'acme-prod', '--customer', 'acme')
  assert.equal(refused.code, 2)
  assert.match(refused.stderr, /--print-token/)
  const list = await run('sub', 'list', '--json')
  assert.deepEqual(JSON.parse(list.stdout), [])

  const written = await run('sub', 'create', 'acme-prod', '--customer', 'acme', '--out', 'card.txt')
  assert.equal(written.code, 0, written.stderr)
  assert.ok(!secretsIn(written.stdout + written.stderr).length, 'nothing secret on the terminal')
  assert.equal(secretsIn(readFileSync(join(home.path, 'card.txt'), 'utf8')).length, 1)
  const again = await run('sub', 'create', 'acme-two', '--customer', 'acme', '--out', 'card.txt')
  assert.equal(again.code, 1, 'an existing file is never overwritten')
})

/** Tokens and passwords as a handover card shows them. */
function secretsIn(text: string): string[] {
  const tokens = [...text.matchAll(/slc_[0-9A-Za-z]{38}/g)].map(([token]) => token)
  const passwords = [...text.matchAll(/password +([0-9A-Za-z]{32})/g)].map((match) => match[1] ?? '')
  return [...new Set([...tokens, ...passwords])]
}

function cardOf(stdout: string): string {
  // The card ends at the next log record, which begins with a brace.
  return /^Sluice subscription[\s\S]*?(?=^\{)/m.exec(stdout)?.[0] ?? ''
}

function filesUnder(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}

function processLines(): [string, string][] {
  return (
    readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap((pid): [string, string][] => {
        try {
          return [[`/proc/${pid}/cmdline`, readFileSync(`/proc/${pid}/cmdline`, 'latin1')]]
        } catch {
          return []
        }
      })
      // Other command lines of this test contain the token on purpose.
      .filter(([, line]) => !line.includes('sub\0show'))
  )
}
