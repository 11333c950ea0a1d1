import { messageOf, ServiceError } from '../../core/error.ts'

/** Translates file system errors that an operator can fix; returns others unchanged. */
export function fileError(error: unknown, file: string): unknown {
  const options = { fields: { file }, cause: error }
  switch ((error as NodeJS.ErrnoException | undefined)?.code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return new ServiceError('disk-full', `no space is left on the disk of ${file}`, options)
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new ServiceError('state-unwritable', `${file} may not be written: ${messageOf(error)}`, options)
    default:
      return error
  }
}
