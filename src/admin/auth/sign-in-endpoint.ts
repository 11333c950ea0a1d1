import type { IncomingMessage } from 'node:http'
import { OIDC_LOGIN_PATH } from '../../contract/admin-routes.ts'
import { AdminError } from '../api/errors.ts'
import type { ConfiguredSignIn } from '../oidc/sign-in.ts'

/** The methods of signing in, for the page that offers them. Needs no token. `ways` is their former name, until 0.2. */
export function respondToSignIn({ method }: IncomingMessage, oidc: Pick<ConfiguredSignIn, 'current'>) {
  if (method !== 'GET' && method !== 'HEAD')
    throw new AdminError('method-not-allowed', 'this path takes GET', 'Use GET.', { allow: 'GET, HEAD' })
  const signIn = oidc.current()
  const methods = [
    { kind: 'token' },
    ...(signIn === undefined ? [] : [{ kind: 'oidc', label: signIn.options.label, path: OIDC_LOGIN_PATH }]),
  ]
  return { status: 200, body: { methods, ways: methods } }
}
