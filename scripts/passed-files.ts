import { spawnSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The test files of a long run that have passed, on the disk: an interrupted run can be continued, on the same code and with the same seed. */
export type PassedFiles = {
  readonly seed: string
  /** Tests in the files that passed before this process, and the number of files. */
  readonly before: { readonly files: number; readonly tests: number }
  /** `chain` is the chain of the matrix, or empty. */
  has(chain: string, path: string): boolean
  add(chain: string, path: string, tests: number): void
}

type Head = { readonly code: string; readonly seed: string }
type Line = { readonly chain: string; readonly path: string; readonly tests: number }

/** Continues the run in `file` if it was one of the same code; else begins anew with this seed. */
export function openPassedFiles(
  file: string,
  { code, seed, isContinued }: Head & { readonly isContinued: boolean },
): PassedFiles {
  const [head, ...lines] = isContinued && existsSync(file) ? readLines(file) : []
  const isSame = head !== undefined && (head as Head).code === code
  const passed = new Map((isSame ? (lines as Line[]) : []).map((line) => [keyOf(line.chain, line.path), line.tests]))
  if (!isSame) {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, `${JSON.stringify({ code, seed })}\n`)
  }
  return {
    seed: isSame ? (head as Head).seed : seed,
    before: { files: passed.size, tests: [...passed.values()].reduce((sum, tests) => sum + tests, 0) },
    has: (chain, path) => passed.has(keyOf(chain, path)),
    add: (chain, path, tests) => appendFileSync(file, `${JSON.stringify({ chain, path, tests })}\n`),
  }
}

/** A last line that was cut by a crash is left out. */
function readLines(file: string): unknown[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as unknown)
}

function keyOf(chain: string, path: string): string {
  return `${chain} ${path}`
}

/** A hash of all files of the work tree that git does not ignore, but documents. */
export function codeOf(root: string): string {
  const list = spawnSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], { cwd: root, maxBuffer: 2 ** 26 })
  if (list.status !== 0) throw new Error(`git ls-files: ${list.stderr.toString()}`)
  const paths = list.stdout
    .toString()
    .split('\0')
    .filter((path) => path !== '' && !path.endsWith('.md'))
  const hashes = [...new Set(paths)]
    .toSorted((a, b) => (a < b ? -1 : 1))
    .filter((path) => existsSync(join(root, path)))
    .map((path) => `${path} ${hash('sha256', readFileSync(join(root, path)), 'hex')}`)
  return hash('sha256', hashes.join('\n'), 'hex')
}
