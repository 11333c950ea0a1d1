import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EXIT_CODES } from '../../src/contract/exit-codes.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { sluice, temporaryFolder } from '../support/cli/run.ts'

const ESCAPE = String.fromCharCode(27)

test('a typo gets a suggestion, exit code 2 and no stack', async () => {
  const cases: [string[], RegExp][] = [
    [['cusomer', 'list'], /did you mean "customer"/],
    [['sub', 'creat'], /did you mean "create"/],
    [['sub', 'list', '--custmer', 'x'], /--customer/],
    [['plan', 'show'], /PLAN/],
    [['sub', 'renew', 'acme'], /--until is required/],
    [['sub', 'renew', 'acme', '--until'], /--until needs a value/],
    [['sub', 'limit', 'acme', '--unitsPerSecond', '--json=false'], /--units-per-second needs a value/],
    [['sub', 'list', '-o'], /--output needs a value/],
  ]
  for (const [words, pattern] of cases) {
    const { code, stdout, stderr } = await sluiceHere(words)
    assert.equal(code, 2, words.join(' '))
    assert.equal(stdout, '')
    assert.match(stderr, pattern)
    assert.match(stderr, /fix: /)
    assert.doesNotMatch(stderr, /\n\s+at /)
  }
})

test('an error as JSON has the five members, on standard error', async () => {
  await using home = await temporaryFolder()
  for (const words of [
    ['sub', 'show', 'nobody', '--json'],
    ['nonsense', '--json'],
    ['sub', 'list', '--bogus', '--json'],
    ['sub', 'list', '--bogus', '--output=json'],
    ['usage', '-o=json', '--since', 'never'],
    // Without a name and without --customer.
    ['sub', 'create', '--json'],
    ['sub', 'create', 'x', '--customer', 'y', '--products', 'shreds-decoded', '--print-token', '--json'],
  ]) {
    const { code, stdout, stderr } = await sluiceHere(words, { SLUICE_STATE: home.file('.sluice') })
    assert.equal(stdout, '', words.join(' '))
    const error = JSON.parse(stderr) as Record<string, unknown>
    assert.deepEqual(Object.keys(error), ['code', 'message', 'fix', 'docs_url', 'retryable'])
    assert.ok(Object.hasOwn(EXIT_CODES, String(code)), `exit code ${code}`)
  }
})

test('shreds-decoded is coming soon, sender needs no subscription, and a wrong product is named', async () => {
  await using home = await temporaryFolder()
  const create = (products: string) =>
    sluiceHere(['sub', 'create', 'x', '--customer', 'y', '--products', products, '--print-token'], {
      SLUICE_STATE: home.file('.sluice'),
    })
  assert.match(
    (await create('shreds-decoded')).stderr,
    /ShredStream Decoded is coming soon and cannot be provisioned yet/,
  )
  assert.match((await create('sender')).stderr, /TPU Sender needs no subscription/)
  assert.match((await create('bundel')).stderr, /"bundel" is not a product, did you mean "bundle"/)
})

test('piped output has no colours, and control characters of foreign text are replaced', async () => {
  await using home = await temporaryFolder()
  const run = (...words: string[]) => sluiceHere(words, { SLUICE_STATE: home.file('.sluice') })
  await run('customer', 'add', 'acme', '--contact', `evil ${ESCAPE}[2J text`)
  for (const words of [
    ['--help'],
    ['sub', '--help'],
    ['customer', 'list'],
    ['customer', 'show', 'acme'],
    ['doctor'],
    ['nonsense'],
  ]) {
    const { stdout, stderr } = await run(...words)
    assert.ok(!(stdout + stderr).includes(ESCAPE), `an escape sequence in: sluice ${words.join(' ')}`)
  }
  assert.match((await run('customer', 'list')).stdout, /evil ·\[2J text/)
})

test('a dry run validates everything and changes nothing', async () => {
  await using home = await temporaryFolder()
  const run = (...words: string[]) => sluiceHere(words, { SLUICE_STATE: home.file('.sluice') })
  await run('customer', 'add', 'acme')
  const before = (await run('audit', 'tail', '--json')).stdout
  const rehearsal = await run('sub', 'create', 'acme-prod', '--customer', 'acme', '--dry-run')
  assert.equal(rehearsal.code, 0, rehearsal.stderr)
  assert.match(rehearsal.stderr, /dry run, nothing changed/)
  assert.match(
    (await run('sub', 'create', 'acme-prod', '--customer', 'nobody', '--dry-run')).stderr,
    /there is no customer "nobody"/,
  )
  assert.equal((await run('sub', 'list', '--json')).stdout.trim(), '[]')
  assert.equal((await run('audit', 'tail', '--json')).stdout, before)
})

test('a list has the same rows as a table, JSON and CSV', async () => {
  await using home = await temporaryFolder()
  const run = (...words: string[]) => sluiceHere(words, { SLUICE_STATE: home.file('.sluice') })
  await run('customer', 'add', 'acme', '--contact', 'with, comma and "quotes"')
  const [row] = JSON.parse((await run('customer', 'list', '-o', 'json')).stdout) as Record<string, unknown>[]
  assert.deepEqual(Object.keys(row ?? {}), ['name', 'state', 'subscriptions', 'contact', 'created_at', 'id'])
  assert.equal(row?.['contact'], 'with, comma and "quotes"')
  const csv = (await run('customer', 'list', '-o', 'csv')).stdout.split('\n')
  assert.equal(csv[0], 'name,state,subscriptions,contact,created_at,id')
  assert.match(csv[1] ?? '', /^acme,active,0,"with, comma and ""quotes""",\d{4}-[^,]+Z,cus_/)
  assert.match((await run('customer', 'list')).stdout, /^NAME +STATE/)
})

test('help prints within its time limit', async () => {
  const startedMs = performance.now()
  const { code, stdout } = await sluice(['--help'])
  assert.equal(code, 0)
  assert.match(stdout, /COMMANDS/)
  // A loose bound that only detects an expensive import at start.
  assert.ok(performance.now() - startedMs < 3000)
})
