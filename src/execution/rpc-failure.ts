import { ERRORS } from '../contract/errors.ts'

type RpcErrorCode = 'invalid-params' | 'blocks-not-held' | 'too-large' | 'method-not-found'

/** A call that is answered with an error. */
export class RpcFailure extends Error {
  override readonly name = 'RpcFailure'
  readonly code: number
  readonly data: Readonly<Record<string, unknown>> | undefined

  constructor(code: RpcErrorCode, detail?: string, data?: Readonly<Record<string, unknown>>) {
    const { jsonRpc, sentence } = ERRORS[code]
    super(detail === undefined ? sentence : `${sentence.replace(/\.$/, '')}: ${detail}`)
    this.code = jsonRpc
    this.data = data
  }
}
