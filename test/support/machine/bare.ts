import { execFile, spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { until } from '../../../src/platform/process/test-wait.ts'
import { temporaryFolder } from '../cli/run.ts'
import { crash } from '../process/crash.ts'

const checkout = join(import.meta.dirname, '../../..')
const START_MS = 30_000
const COMMAND_MS = 240_000

/**
 * A Debian machine without network, without Node, npm and their caches, without this checkout, and without libatomic. Its files are those of this
 * machine; what is written stays in memory and ends with it.
 */
export type BareMachine = AsyncDisposable & {
  /** Runs shell lines that may fail. */
  attempt(lines: string): Promise<{ readonly code: number; readonly stdout: string; readonly output: string }>
  /** Runs shell lines that must succeed; returns their standard output without the last line break. */
  sh(lines: string): Promise<string>
}

/** `$BROUGHT` is the folder that the operator carried to the machine. */
const INIT = `set -e
mount --make-rprivate /
ip link set lo up
mount -t tmpfs tmpfs "$SCRATCH"
mkdir "$SCRATCH/upper" "$SCRATCH/work" "$SCRATCH/root"
cd "$SCRATCH/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$SCRATCH/upper,workdir=$SCRATCH/work" .
cd "$SCRATCH/root"
mount -t proc proc proc
mount --rbind /dev dev
for folder in root tmp run opt var/tmp "./$CHECKOUT"; do mkdir -p "$folder" && mount -t tmpfs -o mode=1777 tmpfs "$folder"; done
mkdir -p media/brought
mount --bind -o ro "$BROUGHT" media/brought
rm -rf etc/sluice var/lib/sluice
find usr/bin usr/sbin usr/local/bin \\( -name node -o -name nodejs -o -name npm -o -name npx \\) -delete
rm -f usr/lib/*/libatomic.so*
touch "$MARKER"
exec chroot . sleep infinity
`

/** Returns the reason where this machine does not allow it. */
export async function startBareMachine(brought: string): Promise<BareMachine | string> {
  if (process.getuid?.() !== 0) return 'not root'
  const folder = await temporaryFolder()
  mkdirSync(folder.file('scratch'))
  // In the root folder of the new machine only: until it is there, a command would run on this machine.
  const marker = `bare-machine-${basename(folder.path)}`
  writeFileSync(folder.file('init.sh'), INIT)
  const child = spawn(
    'unshare',
    ['--pid', '--mount', '--net', '--ipc', '--uts', '--fork', '--kill-child', 'sh', folder.file('init.sh')],
    {
      env: {
        PATH: process.env['PATH'] ?? '',
        CHECKOUT: checkout,
        BROUGHT: brought,
        SCRATCH: folder.file('scratch'),
        MARKER: marker,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let message = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (message += chunk.toString()))
  const close = async () => {
    await crash(child)
    await folder[Symbol.asyncDispose]()
  }
  const attempt = async (lines: string) => {
    const pid = firstChildOf(child.pid)
    if (pid === undefined) return { code: -1, stdout: '', output: `not running: ${message}` }
    const enter = ['-t', pid, '-m', '-p', '-n', '-i', '-u', '-r', '-w', '--', 'env', '-i']
    const words = [...enter, 'HOME=/root', 'PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'sh', '-euc', lines]
    try {
      const { stdout, stderr } = await promisify(execFile)('nsenter', words, {
        timeout: COMMAND_MS,
        maxBuffer: 2 ** 25,
      })
      return { code: 0, stdout, output: stdout + stderr }
    } catch (error) {
      const { code, stdout, stderr } = error as { code: unknown; stdout: string; stderr: string }
      return { code: typeof code === 'number' ? code : -1, stdout, output: stdout + stderr }
    }
  }
  const sh = async (lines: string) => {
    const { code, stdout, output } = await attempt(lines)
    if (code !== 0) throw new Error(`${lines}\nended with ${code}:\n${output}`)
    return stdout.trimEnd()
  }
  const isChrooted = async () => child.exitCode !== null || (await attempt(`test -e /${marker}`)).code === 0
  try {
    await until('the machine is up', isChrooted, START_MS)
  } catch (error) {
    message += String(error)
  }
  if (child.exitCode === null && message === '') return { attempt, sh, [Symbol.asyncDispose]: close }
  await close()
  return message.trim()
}

/** The child of `unshare`, which is process 1 inside. */
function firstChildOf(pid: number | undefined): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0] || undefined
  } catch {
    return undefined
  }
}
