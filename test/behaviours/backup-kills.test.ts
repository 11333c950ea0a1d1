import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, readdirSync } from 'node:fs'
import { test } from 'node:test'
import { sluiceHere } from '../support/cli/in-process.ts'
import { BARE_ENV, temporaryFolder } from '../support/cli/run.ts'
import { createRandom, repeatsOf, seedOf } from '../support/process/property.ts'

const CLI_CHILD = new URL('../support/cli/on-signal.ts', import.meta.url).pathname

test('killed at any point, a backup is complete or absent, and a restore leaves a store that opens', async (t) => {
  await using home = await temporaryFolder()
  const run = (words: string) => sluiceHere(words.split(' '), { SLUICE_STATE: home.file('.sluice') })
  await run('customer add old')
  for (let n = 0; n < 40; n++) await run(`customer add customer-${n}`)
  await run(`backup ${home.file('whole')}`)
  await run('customer add newest')
  const random = createRandom(seedOf(t))
  const lasts: number[] = []
  const outcomes = { old: 0, restored: 0, file: 0, none: 0 }
  const kills = repeatsOf({ short: 8, full: 60 })
  for (let n = 0; n < kills; n++) {
    const state = home.file(`.state-${n}`)
    cpSync(home.file('.sluice'), state, { recursive: true })
    const made = home.file(`made-${n}`)
    const words = n % 2 === 0 ? ['restore', home.file('whole'), '--force'] : ['backup', made]
    const kind = n % 2
    // The first of each kind completes and shows how long that takes on this machine.
    const tookMs = await runAndKill(words, state, n < 2 ? undefined : random(Math.ceil((lasts[kind] as number) * 1.2)))
    if (n < 2) lasts[kind] = tookMs
    const look = (text: string) => sluiceHere(text.split(' '), { SLUICE_STATE: state })
    if (n % 2 === 0) {
      const listed = await look('customer list --json')
      // A log that is ahead of the store is reported with the fix; both kept files exist.
      if (listed.code !== 0) {
        assert.match(listed.stderr, /has lost changes.*mv /s)
        outcomes.restored += 1
        continue
      }
      const names = (JSON.parse(listed.stdout) as { name: string }[]).map(({ name }) => name)
      assert.ok(names.includes('old') && names.length >= 41, 'never an empty store')
      outcomes[names.includes('newest') ? 'old' : 'restored'] += 1
    } else if (readdirSync(home.path).includes(`made-${n}`)) {
      assert.equal((await look(`restore ${made} --dry-run`)).code, 0, 'an existing file is complete')
      outcomes.file += 1
    } else outcomes.none += 1
  }
  t.diagnostic(JSON.stringify(outcomes))
})

/** Runs a command in a process that reports when it is loaded, and kills it that long afterwards. Returns how long it ran. */
async function runAndKill(words: readonly string[], state: string, afterMs: number | undefined): Promise<number> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', CLI_CHILD, ...words], {
    env: { ...BARE_ENV, SLUICE_STATE: state },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const closed = once(child, 'close')
  await once(child.stdout, 'data')
  const startedMs = performance.now()
  child.stdin.write('go\n')
  const timer = afterMs === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), afterMs)
  await closed
  clearTimeout(timer)
  return performance.now() - startedMs
}
