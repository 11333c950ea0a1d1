import { constants, existsSync, type Stats } from 'node:fs'
import { access, chmod, lstat, mkdir, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { messageOf, ServiceError } from '../../core/error.ts'

export type StateFolder = {
  readonly path: string
  /** A path inside the folder. */
  file(...parts: string[]): string
  /** A folder inside the folder, created with mode 0700 if needed. */
  folder(...parts: string[]): Promise<string>
}

/** Where systemd shows the credentials of its units (systemd.exec(5)). */
const CREDENTIALS = '/run/credentials'

/** Creates the folder (0700), or checks an existing one: owned by this user, closed to all others, writable. */
export async function openStateFolder(path: string): Promise<StateFolder> {
  const root = resolve(path)
  await makeFolder(root)
  await checkOwnedFolder(root)
  return {
    path: root,
    file: (...parts) => join(root, ...parts),
    async folder(...parts) {
      const inside = join(root, ...parts)
      await makeFolder(inside)
      return inside
    },
  }
}

/** A file that holds a secret must be readable by its owner only, and the owner must be the user of this process. */
export async function checkSecretFile(path: string, { credentials = CREDENTIALS } = {}): Promise<void> {
  const found = await stat(path).catch((error: unknown) => {
    throw new ServiceError('secret-invalid', `secret file cannot be read: ${messageOf(error)}`, {
      fields: { path },
      fix: `Check that ${path} exists and that the service user may read it.`,
      cause: error,
    })
  })
  if (found.isFile() && (isOwnCredential(path) || (await isCredentialOfUnit(path, credentials)))) return
  checkOwner(path, found.uid)
  const open = found.mode & 0o077
  if (!found.isFile() || open !== 0) {
    const mode = (found.mode & 0o777).toString(8).padStart(4, '0')
    throw new ServiceError('file-mode', `${path} holds a secret and has mode ${mode}: others may read it`, {
      fields: { path, mode },
      fix: `chmod 600 ${quote(path)}`,
    })
  }
}

/** systemd puts the credentials of a service in a folder that no other user can enter. In newer versions root owns the files and an ACL admits the service. */
function isOwnCredential(path: string): boolean {
  const folder = process.env['CREDENTIALS_DIRECTORY']
  return folder !== undefined && dirname(resolve(path)) === resolve(folder)
}

/**
 * The same for a command that the service user runs outside of the unit: the file is in `/run/credentials/UNIT`. Root or this user owns both folders, no other
 * user writes to them, and none but those that the ACL admits, which shows as the rights of the group, enters that of the unit.
 */
async function isCredentialOfUnit(path: string, credentials: string): Promise<boolean> {
  const unit = dirname(resolve(path))
  if (dirname(unit) !== credentials) return false
  const [all, own] = await Promise.all([lstat(credentials), lstat(unit)])
  const isTrusted = ({ uid }: Stats) => uid === 0 || uid === process.geteuid?.()
  return isTrusted(all) && isTrusted(own) && (all.mode & 0o022) === 0 && (own.mode & 0o027) === 0
}

async function makeFolder(path: string): Promise<void> {
  try {
    // One by one: the recursive form does not return under a pseudo file system such as /proc.
    for (const folder of missingOf(path)) await makeOne(folder)
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    throw new ServiceError('state-unwritable', `state folder ${path} cannot be used: ${messageOf(error)}`, {
      fields: { path },
      fix: `Make ${path} a folder that the service user may write, or name another with --state.`,
      cause: error,
    })
  }
}

/** The missing parent folders, outermost first. */
function missingOf(path: string): string[] {
  const missing: string[] = []
  for (let at = path; !existsSync(at) && dirname(at) !== at; at = dirname(at)) missing.unshift(at)
  return missing
}

async function makeOne(folder: string): Promise<void> {
  await mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
}

async function checkOwnedFolder(path: string): Promise<void> {
  const found = await stat(path)
  checkOwner(path, found.uid)
  if ((found.mode & 0o077) === 0) return
  const mode = (found.mode & 0o777).toString(8).padStart(4, '0')
  throw new ServiceError('file-mode', `state folder ${path} has mode ${mode}: others may look into it`, {
    fields: { path, mode },
    fix: `chmod 700 ${quote(path)}`,
  })
}

function checkOwner(path: string, uid: number): void {
  const own = process.geteuid?.()
  if (own === undefined || uid === own) return
  throw new ServiceError('file-mode', `${path} belongs to user ${uid}, this command runs as user ${own}`, {
    fields: { path, uid, own },
    fix:
      own === 0
        ? `Run it as its owner: sudo -u '#${uid}' sluice …`
        : `Run it as user ${uid}, or as root: chown ${own} ${quote(path)}`,
  })
}

/** Quoted for a shell. */
function quote(path: string): string {
  return /^[\w./@:+-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`
}

/** Restricts a file to its owner. */
export async function makePrivate(path: string): Promise<void> {
  await chmod(path, 0o600)
}
