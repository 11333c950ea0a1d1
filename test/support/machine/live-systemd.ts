import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { existsSync, globSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { until } from '../../../src/platform/process/test-wait.ts'
import { temporaryFolder } from '../cli/run.ts'
import { crash } from '../process/crash.ts'

const MANAGER = '/lib/systemd/systemd'
const READY_MS = 30_000
const COMMAND_MS = 180_000

export type Ran = { readonly code: number; readonly stdout: string; readonly stderr: string }

/** A systemd instance as process 1 of its own namespaces: everything started and written in it ends with it. */
export type LiveSystemd = AsyncDisposable & {
  /** Runs a command in its namespaces. */
  run(program: string, ...words: string[]): Promise<Ran>
}

/** The folders a unit writes to are empty and in memory, /etc is copy-on-write, and the network has only a loopback. */
const INIT = `set -e
mount --make-rprivate /
ip link set lo up
mount -t cgroup2 cgroup2 /sys/fs/cgroup
for folder in /run /opt /var/lib /var/cache; do mount -t tmpfs tmpfs "$folder"; done
mkdir -p /run/scratch/upper /run/scratch/work /run/systemd/system /opt/sluice
mount -t overlay overlay -o lowerdir=/etc,upperdir=/run/scratch/upper,workdir=/run/scratch/work /etc
mount --rbind "$CHECKOUT" /opt/sluice
for target in default basic sysinit shutdown; do printf '[Unit]\\n' >"/run/systemd/system/$target.target"; done
exec env -i PATH="$PATH" container=test SYSTEMD_UNIT_PATH=/run/systemd/system \\
  ${MANAGER} --system --unit=default.target --log-target=console --log-level=warning --show-status=0 --crash-shell=no --dump-core=no
`

/** The mount point of cgroup v2, alone or beside cgroup v1, which is not used. */
const groupsFolder = () =>
  ['/sys/fs/cgroup', '/sys/fs/cgroup/unified'].find((folder) => existsSync(join(folder, 'cgroup.procs')))

/** Returns the reason where the machine does not allow it. `checkout` is mounted at /opt/sluice. */
export async function startLiveSystemd(checkout: string): Promise<LiveSystemd | string> {
  if (process.getuid?.() !== 0) return 'not root'
  if (!existsSync(MANAGER)) return `there is no ${MANAGER}`
  const groups = groupsFolder()
  if (groups === undefined) return 'cgroup v2 is not mounted'
  const folder = await temporaryFolder()
  const group = join(groups, `sluice-test-${process.pid}`)
  writeFileSync(folder.file('init.sh'), INIT)
  const namespaces = [
    '--pid',
    '--mount',
    '--uts',
    '--ipc',
    '--net',
    '--cgroup',
    '--mount-proc',
    '--fork',
    '--kill-child',
  ]
  const child = spawn(
    'sh',
    [
      '-c',
      'mkdir "$1" && echo $$ >"$1/cgroup.procs" && script="$2" && shift 2 && exec unshare "$@" sh "$script"',
      ...['sh', group, folder.file('init.sh'), ...namespaces],
    ],
    { env: { PATH: process.env['PATH'] ?? '', CHECKOUT: checkout }, stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let message = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (message += chunk.toString()))
  const close = async () => {
    await crash(child)
    await until('its control groups are empty', () => removeGroups(group))
    await folder[Symbol.asyncDispose]()
  }
  const run = (program: string, ...words: string[]) => runIn(firstProcessOf(child), [program, ...words])
  try {
    await until(
      'systemd is up',
      async () => child.exitCode !== null || (await run('systemctl', 'is-system-running')).stdout.trim() === 'running',
      READY_MS,
    )
  } catch (error) {
    message += String(error)
  }
  if (child.exitCode === null && !message.includes('did not become true')) return { run, [Symbol.asyncDispose]: close }
  await close()
  return message.trim()
}

async function runIn(pid: number | undefined, command: readonly string[]): Promise<Ran> {
  if (pid === undefined) return { code: -1, stdout: '', stderr: 'not running' }
  const words = ['-t', String(pid), '-m', '-p', '-u', '-i', '-n', '-C', '--', ...command]
  try {
    const { stdout, stderr } = await promisify(execFile)('nsenter', words, { timeout: COMMAND_MS })
    return { code: 0, stdout, stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: unknown; stdout: string; stderr: string }
    return { code: typeof code === 'number' ? code : -1, stdout, stderr }
  }
}

/** The child of `unshare`, which is process 1 inside. */
function firstProcessOf({ pid }: ChildProcess): number | undefined {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0]) || undefined
  } catch {
    return undefined
  }
}

/** Removes the innermost first; a group with a process in it cannot be removed yet. */
function removeGroups(group: string): boolean {
  try {
    for (const path of [...globSync(`${group}/**/`), group].toSorted().toReversed())
      if (existsSync(path)) rmdirSync(path)
    return true
  } catch {
    return false
  }
}
