import { execFile } from 'node:child_process'
import { readFile, statfs } from 'node:fs/promises'
import { promisify } from 'node:util'
import { printBytesShort } from '../../core/human-units.ts'
import { bad, type Finding, ok, warn } from '../../processes/compose/config/finding.ts'

const NODE_MAJOR_MIN = 24
/** Enough for a trial; even a small load needs more than less. */
const DESCRIPTORS_MIN = 4096
const DESCRIPTORS_WANTED = 65_536
const DISK_BYTES_WARN = 2 * 1024 ** 3
const DISK_BYTES_MIN = 256 * 1024 ** 2
const INODES_MIN = 10_000

/** The machine, and the limits of the running process; without one, those that a process started here would have. */
export async function checkMachine(stateDir: string, runningPid?: number): Promise<Finding[]> {
  const limits = await limitsOf(runningPid)
  return [checkRuntime(), checkUmask(limits), checkDescriptors(limits), ...(await checkDisk(stateDir))]
}

type ProcessLimits = {
  /** Begins each message: empty for this process. */
  readonly prefix: string
  readonly umask: number
  /** Undefined where the system does not report it. */
  readonly descriptors: string | undefined
}

/** The limits of a process; those of this one where the other cannot be read. */
async function limitsOf(pid: number | undefined): Promise<ProcessLimits> {
  const read = (file: string) => readFile(`/proc/${pid ?? 'self'}/${file}`, 'utf8').catch(() => undefined)
  const [limits, status] = [await read('limits'), await read('status')]
  if (pid !== undefined && (limits === undefined || status === undefined)) return limitsOf(undefined)
  const umask = /^Umask:\s+(\d+)/m.exec(status ?? '')?.[1]
  return {
    prefix: pid === undefined ? '' : `process ${pid}: `,
    umask: umask === undefined ? process.umask() : Number.parseInt(umask, 8),
    descriptors: /^Max open files\s+(\S+)/m.exec(limits ?? '')?.[1],
  }
}

function checkRuntime(): Finding {
  const major = Number(process.versions.node.split('.')[0])
  if (major >= NODE_MAJOR_MIN) return ok('runtime', `Node ${process.versions.node}`)
  return bad('runtime', `Node ${process.versions.node} is too old`, 'npm ci && ./sluice doctor')
}

function checkUmask({ prefix, umask }: ProcessLimits): Finding {
  const text = `${prefix}${umask.toString(8).padStart(3, '0')}`
  if ((umask & 0o077) === 0o077) return ok('umask', text)
  const fix = prefix === '' ? 'umask 077' : 'umask 077   # before the start; in a unit: UMask=0077'
  return warn('umask', `${text}: files made by hand in the state folder would be readable by others`, fix)
}

function checkDescriptors({ prefix, descriptors: soft }: ProcessLimits): Finding {
  if (soft === undefined) return ok('descriptors', 'limit unknown on this system')
  if (soft === 'unlimited' || Number(soft) >= DESCRIPTORS_WANTED) return ok('descriptors', `${prefix}${soft}`)
  const message = `${prefix}only ${soft} open files allowed, ${DESCRIPTORS_WANTED} recommended`
  const fix = `ulimit -n ${DESCRIPTORS_WANTED}   # in a unit: LimitNOFILE=${DESCRIPTORS_WANTED}`
  return Number(soft) < DESCRIPTORS_MIN ? bad('descriptors', message, fix) : warn('descriptors', message, fix)
}

async function checkDisk(stateDir: string): Promise<Finding[]> {
  const disk = await statfs(stateDir).catch(() => statfs('.'))
  const free = disk.bavail * disk.bsize
  const space =
    free < DISK_BYTES_MIN
      ? bad('disk', `only ${printBytesShort(free)} free for ${stateDir}`, `df -h ${stateDir}   # then free some space`)
      : free < DISK_BYTES_WARN
        ? warn('disk', `${printBytesShort(free)} free for ${stateDir}`, `df -h ${stateDir}   # then free some space`)
        : ok('disk', `${printBytesShort(free)} free`)
  // File systems without a fixed inode table report zero.
  const inodes =
    disk.files > 0 && disk.ffree < INODES_MIN
      ? [
          bad(
            'inodes',
            `only ${disk.ffree} inodes free for ${stateDir}`,
            `df -i ${stateDir}   # then remove small files`,
          ),
        ]
      : []
  return [space, ...inodes]
}

/** Whether the clock is synchronized, if timedatectl is installed. */
export async function checkClockSync(newestAuditMs: number | undefined, nowMs: number): Promise<Finding> {
  if (newestAuditMs !== undefined && newestAuditMs > nowMs + 60_000) {
    const ahead = new Date(newestAuditMs).toISOString()
    return bad('clock', `the clock is behind the newest audit line (${ahead})`, 'timedatectl set-ntp true')
  }
  const response = await promisify(execFile)('timedatectl', ['show', '-p', 'NTPSynchronized', '--value'], {
    timeout: 2000,
  }).catch(() => undefined)
  if (response?.stdout.trim() === 'no')
    return warn('clock', 'the clock is not synchronized', 'timedatectl set-ntp true')
  return ok('clock', response === undefined ? 'not behind the newest audit line' : 'synchronized')
}
