import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, unlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { writeFileAtomicSync } from '../files/atomic.ts'

/**
 * A running process as it announces itself to the commands of its user, which may run in any folder: a file of mode 0600 in a runtime folder that only
 * the user can write. It names a folder and holds no secret. A file that a killed process left is recognised by the number and start time of the
 * process, and ignored.
 */
export type RunningProcess = {
  readonly pid: number
  /** The state folder, absolute. */
  readonly state: string
  /** The config file, absolute; null without one. */
  readonly config: string | null
  /** A chain alone: commands about other services do not choose it where there is another process. */
  readonly isChain?: true
}

type Announcement = RunningProcess & { readonly start: string | null }

type Env = Readonly<Record<string, string | undefined>>

const FILES_MAX = 64
const FILE_BYTES_MAX = 16 * 1024
/** The runtime folder of the shipped systemd unit. */
const SYSTEM_FOLDER = '/run/sluice'

/** Announces this process until it is disposed. Without a folder to write to it does nothing: the commands then need `--state`. */
export function announceProcess(process: RunningProcess, env: Env): Disposable {
  const folder = ownFolder(env)
  const file = join(folder, `${process.pid}.json`)
  try {
    if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 })
    if (!isTrusted(folder)) return { [Symbol.dispose]() {} }
    removeStale(folder)
    const announced: Announcement = { ...process, start: startOf(process.pid) }
    writeFileAtomicSync(file, `${JSON.stringify(announced)}\n`)
  } catch {
    // A convenience only: a full disk or a missing folder does not prevent a start.
  }
  return { [Symbol.dispose]: () => remove(file) }
}

/** The processes that run now, by state folder. */
export function runningProcesses(env: Env): RunningProcess[] {
  const folders = new Set([ownFolder(env), SYSTEM_FOLDER])
  const found = [...folders].flatMap((folder) => readFolder(folder)).filter(isRunning)
  const processes = found.map(({ start: _start, ...process }) => process)
  return [...new Map(processes.map((process) => [process.state, process])).values()].toSorted((a, b) =>
    a.state < b.state ? -1 : 1,
  )
}

/** What systemd gives the unit, else the runtime folder of the login session, else one in the folder for temporary files. */
function ownFolder(env: Env): string {
  const [ofUnit] = (env['RUNTIME_DIRECTORY'] ?? '').split(':')
  if (ofUnit) return ofUnit
  const ofSession = env['XDG_RUNTIME_DIR']
  return ofSession ? join(ofSession, 'sluice') : join(tmpdir(), `sluice-${process.geteuid?.() ?? 'user'}`)
}

/**
 * A folder of this user that no other user can write to: in the folder for temporary files somebody else may have made it first. Root also reads the
 * runtime folder of the service user, whose name only root can give.
 */
function isTrusted(folder: string): boolean {
  const found = lstatSync(folder)
  const own = process.geteuid?.()
  const isOwner = own === undefined || found.uid === own || (own === 0 && folder === SYSTEM_FOLDER)
  return found.isDirectory() && isOwner && (found.mode & 0o022) === 0
}

function readFolder(folder: string): Announcement[] {
  try {
    if (!isTrusted(folder)) return []
    return readdirSync(folder)
      .filter((name) => /^\d{1,10}\.json$/.test(name))
      .slice(0, FILES_MAX)
      .flatMap((name) => parse(join(folder, name)) ?? [])
  } catch {
    return []
  }
}

function parse(file: string): Announcement | undefined {
  try {
    if (lstatSync(file).size > FILE_BYTES_MAX) return undefined
    const { pid, state, config, start, isChain } = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
    const isPath = (value: unknown): value is string => typeof value === 'string' && isAbsolute(value)
    if (!Number.isSafeInteger(pid) || !isPath(state) || !(config === null || isPath(config))) return undefined
    const process = { pid: pid as number, state, config, start: typeof start === 'string' ? start : null }
    return isChain === true ? { ...process, isChain } : process
  } catch {
    return undefined
  }
}

function isRunning({ pid, start, state }: Announcement): boolean {
  return startOf(pid) === start && isAlive(pid) && existsSync(join(state, 'control.sock'))
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // The process of another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** The start time of a process in clock ticks since boot (proc(5), field 22 of stat): another process with the same number has another one. */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name of the program, in parentheses, may contain anything.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null
  } catch {
    return null
  }
}

function removeStale(folder: string): void {
  for (const announced of readFolder(folder))
    if (startOf(announced.pid) !== announced.start) remove(join(folder, `${announced.pid}.json`))
}

function remove(file: string): void {
  try {
    unlinkSync(file)
  } catch {
    // It was not written, or is gone.
  }
}
