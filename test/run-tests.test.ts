import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { codeOf, openPassedFiles } from '../scripts/passed-files.ts'
import { runAgain } from '../scripts/run-again.ts'
import type { TestTally } from '../scripts/run-tests.ts'

const IMPORTS = `import { describe, it, test } from 'node:test'\nimport assert from 'node:assert/strict'\n`

describe('the test runner of the check', () => {
  test('counts passed tests and prints one line for each file', () => {
    const { tally, output } = runPlanted({
      'a.test.ts': `${IMPORTS}describe('group', () => { it('one', () => {}); it('two', () => {}) })\ntest('three', () => {})`,
      'b.test.ts': `${IMPORTS}test('four', () => {})`,
    })
    assert.deepEqual(tally, { passed: 4, failures: [], skips: [] })
    assert.match(output, /^ok {4}a\.test\.ts +3 tests/m)
  })

  test('shows a failure with its path, its diff and the output of the file', () => {
    const { tally, output } = runPlanted({
      'a.test.ts': `${IMPORTS}console.log('a clue')\ndescribe('group', () => { it('breaks', () => assert.equal('left', 'right')) })`,
    })
    assert.deepEqual(tally.failures, ['a.test.ts: group > breaks'])
    for (const part of [/^FAIL {2}a\.test\.ts/m, /'left' !== 'right'|\+ 'left'/, /a clue/]) assert.match(output, part)
  })

  test('reports a file that cannot be loaded, one that dies, one without tests, and a pattern without files', () => {
    const { tally } = runPlanted({
      'broken.test.ts': `import './gone.ts'`,
      'dies.test.ts': `${IMPORTS}test('first', () => {})\ntest('dies', () => process.exit(0))\ntest('never', () => {})`,
      'empty.test.ts': `export const nothing = 1`,
    })
    assert.deepEqual(
      tally.failures.map((failure) => failure.replace(/:.*/, '')).toSorted((a, b) => a.localeCompare(b)),
      ['broken.test.ts', 'dies.test.ts', 'empty.test.ts'],
    )
    assert.match(runPlanted({}).tally.failures.join(), /no test file/)
  })

  test('reports skipped tests, skipped groups and todo tests', () => {
    const { tally } = runPlanted({
      'a.test.ts': `${IMPORTS}test('one', { skip: 'why' }, () => {})\ndescribe('group', { skip: 'whole' }, () => { it('in', () => {}) })\ntest('later', { todo: true }, () => {})`,
    })
    assert.deepEqual(
      tally.skips.map(({ test: title, reason }) => `${title} (${reason})`),
      ['a.test.ts: one (why)', 'a.test.ts: group (whole)', 'a.test.ts: later (todo true)'],
    )
  })

  test('a long run prints its progress', () => {
    const { tally, output } = runPlanted(
      {
        'quick.test.ts': `${IMPORTS}test('one', () => {})`,
        'slow.test.ts': `${IMPORTS}test('two', () => new Promise((done) => setTimeout(done, 3000)))`,
      },
      { progressMs: 100 },
    )
    assert.equal(tally.passed, 2)
    assert.match(output, /^\.{4} {2}1 of 2 files done; running: slow\.test\.ts \(0\.\d min\)$/m)
  })

  test('whole services run before the files of src, which are short', () => {
    const { output } = runPlanted({
      'src/a.test.ts': `${IMPORTS}test('one', () => {})`,
      'test/z.test.ts': `${IMPORTS}test('one', () => {})`,
      'test/y.test.ts': `${IMPORTS}test('one', () => {})`,
    })
    const reported = [...output.matchAll(/^ok {4}(\S+)/gm)].map(([, path]) => path)
    assert.deepEqual(reported, ['test/y.test.ts', 'test/z.test.ts', 'src/a.test.ts'])
  })

  test('names a file whose process ends long after its tests', () => {
    const late = { 'late.test.ts': `${IMPORTS}test('leaves a timer', () => { setTimeout(() => {}, 2000) })` }
    assert.match(runPlanted(late, { lateMs: 1000 }).output, /^ +LATE: its process ran \d+ s longer than its tests$/m)
    assert.doesNotMatch(runPlanted(late, { lateMs: 60_000 }).output, /LATE/)
  })

  test('ends a run that hangs and names the file', () => {
    const { tally } = runPlanted(
      { 'hangs.test.ts': `${IMPORTS}test('leaves a timer', () => { setInterval(() => {}, 1000) })` },
      { silenceMs: 1500 },
    )
    assert.match(tally.failures.join(), /no report for 1\.5 s.*hangs\.test\.ts/)
  })
})

describe('a long run in parts', () => {
  test('goes on with the files that have not passed on the same code, with the seed of the first part', () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-passed-'))
    try {
      const file = join(folder, 'run.jsonl')
      const first = openPassedFiles(file, { code: 'a', seed: '7', isContinued: false })
      assert.deepEqual([first.seed, first.before], ['7', { files: 0, tests: 0 }])
      first.add('', 'x.test.ts', 3)
      first.add('tower-200', 'y.test.ts', 4)
      appendFileSync(file, '{"chain":"","path":"cut')
      const second = openPassedFiles(file, { code: 'a', seed: '8', isContinued: true })
      assert.deepEqual([second.seed, second.before], ['7', { files: 2, tests: 7 }])
      const known = [second.has('', 'x.test.ts'), second.has('tower-200', 'y.test.ts'), second.has('', 'y.test.ts')]
      assert.deepEqual(known, [true, true, false])
      assert.equal(openPassedFiles(file, { code: 'b', seed: '9', isContinued: true }).before.files, 0, 'other code')
      assert.equal(openPassedFiles(file, { code: 'b', seed: '9', isContinued: false }).before.files, 0)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  test('the code is every file but documents and what git ignores', () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-code-'))
    try {
      spawnSync('git', ['init', '-q'], { cwd: folder })
      writeFileSync(join(folder, '.gitignore'), 'ignored\n')
      writeFileSync(join(folder, 'a.ts'), '1')
      const before = codeOf(folder)
      writeFileSync(join(folder, 'ignored'), '1')
      writeFileSync(join(folder, 'readme.md'), '1')
      assert.equal(codeOf(folder), before)
      writeFileSync(join(folder, 'a.ts'), '2')
      assert.notEqual(codeOf(folder), before)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  test('only files without failure and without skip have passed', () => {
    const files = {
      'a.test.ts': `${IMPORTS}test('one', () => {})`,
      'b.test.ts': `${IMPORTS}test('two', () => assert.fail())`,
      'c.test.ts': `${IMPORTS}test('three', { skip: 'why' }, () => {})`,
      'd.test.ts': `${IMPORTS}test('four', () => {})`,
    }
    const { output, tally } = runPlanted(files, { passed: ['d.test.ts'] })
    assert.deepEqual(
      [...output.matchAll(/^passed (\S+ \d+)$/gm)].map(([, line]) => line),
      ['a.test.ts 1'],
    )
    assert.doesNotMatch(output, /d\.test\.ts/)
    assert.equal(tally.passed, 1)
  })
})

describe('files that failed in a concurrent run', () => {
  const failing = (...failures: string[]): TestTally => ({ passed: 9, failures, skips: [] })
  const settle = async (failures: string[], alone: (file: string, time: number) => boolean) => {
    const ran: string[] = []
    const message: string[] = []
    const settled = await runAgain(
      failing(...failures),
      async (file) => {
        ran.push(file)
        return alone(file, ran.filter((other) => other === file).length) ? failing() : failing(`${file}: again`)
      },
      (line) => void message.push(line),
    )
    return { ...settled, ran, message: message.join('\n') }
  }

  test('are run twice alone; those that pass both times are reported as unstable, those that fail again have failed', async () => {
    const { failures, unstable, ran, message } = await settle(
      ['a.test.ts: one', 'b.test.ts: two', 'a.test.ts: group > three', 'c.test.ts'],
      (file, time) => file === 'a.test.ts' || (file === 'b.test.ts' && time === 1),
    )
    assert.deepEqual(failures, ['b.test.ts: two', 'c.test.ts'])
    assert.deepEqual(unstable, ['a.test.ts: one', 'a.test.ts: group > three'])
    assert.deepEqual(ran, ['a.test.ts', 'a.test.ts', 'b.test.ts', 'b.test.ts', 'c.test.ts'])
    assert.match(message, /^UNSTABLE {2}a\.test\.ts: group > three: failed in parallel, passed 2 times alone$/m)
  })

  test('stay failures when there are many, or when the run was aborted', async () => {
    const many = Array.from({ length: 13 }, (_none, at) => `${at}.test.ts: one`)
    for (const failed of [
      many,
      ['no report for 360 s, aborted; still running: a.test.ts'],
      ['a.test.ts: one', 'no test'],
    ]) {
      const { failures, unstable, ran } = await settle(failed, () => true)
      assert.deepEqual([failures, unstable, ran], [failed, [], []])
    }
    assert.deepEqual((await settle([], () => true)).failures, [])
  })
})

/** In a process of its own: `node:test` does not run inside itself. */
function runPlanted(
  files: Record<string, string>,
  {
    silenceMs = 60_000,
    progressMs,
    lateMs,
    passed = [],
  }: { silenceMs?: number; progressMs?: number; lateMs?: number; passed?: string[] } = {},
): { tally: TestTally; output: string } {
  const root = mkdtempSync(join(tmpdir(), 'sluice-run-tests-'))
  try {
    writeFileSync(join(root, 'package.json'), '{"type":"module"}')
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), text)
    }
    const program = join(root, 'program.ts')
    const text = `
      import { runTests } from ${JSON.stringify(join(import.meta.dirname, '../scripts/run-tests.ts'))}
      const options = ${JSON.stringify({ root, patterns: ['**/*.test.ts'], concurrency: 2, testTimeoutMs: 60_000, silenceMs, progressMs, lateMs, showSeeds: false })}
      const tally = await runTests({
        ...options,
        isPassed: (path) => ${JSON.stringify(passed)}.includes(path),
        onPassed: (path, tests) => console.log('passed ' + path + ' ' + tests),
        report: (line) => console.log(line),
      })
      process.stderr.write(JSON.stringify(tally))`
    writeFileSync(program, text)
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const { stdout, stderr } = spawnSync(process.execPath, [program], {
      cwd: root,
      env,
      encoding: 'utf8',
      timeout: 90_000,
    })
    return { tally: JSON.parse(stderr) as TestTally, output: stdout }
  } finally {
    rmSync(root, { recursive: true })
  }
}
