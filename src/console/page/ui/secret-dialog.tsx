import { useSignal } from '@preact/signals'
import { CopyButton } from '../../../ui/copy-button.tsx'
import { secretFacts } from '../../model/secrets.ts'
import { type ShownSecret, useStore } from '../store.ts'
import { Modal } from './modal.tsx'

/** A new token or password, and the card for the customer. No request can show them again, so Escape does not close it before something was copied. */
export function SecretDialog({ shown }: { shown: ShownSecret }) {
  const { secret } = useStore()
  const isCopied = useSignal(false)
  const isAsked = useSignal(false)

  const close = (): void => {
    if (isCopied.value || isAsked.value) secret.value = undefined
    else isAsked.value = true
  }
  const copied = () => (isCopied.value = true)
  const card = shown.secret.card
  return (
    <Modal class="secret" titleId="secret-title" onClose={close}>
      <h2 id="secret-title">{shown.title}</h2>
      <p class="notice once">
        <strong>Shown once.</strong> Copy it now and send it to the customer. Only its hash is stored, so nobody can
        show it again; a lost token is replaced by a new one.
      </p>
      <dl class="secret-facts">
        {secretFacts(shown.secret).map(({ name, value, isSecret }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <code data-secret={isSecret ? name : undefined}>{value}</code>
              <span onClickCapture={copied}>
                <CopyButton class="copy" text={() => value} label={`Copy ${name}`}>
                  Copy
                </CopyButton>
              </span>
            </dd>
          </div>
        ))}
      </dl>
      {card !== undefined && (
        <>
          <h3>Card for the customer</h3>
          <div class="code handover">
            <pre tabIndex={0} role="region" aria-label="Card for the customer">
              {card}
            </pre>
          </div>
        </>
      )}
      <p class="dialog-buttons">
        {isAsked.value && !isCopied.value && (
          <span class="warning" role="alert">
            Nothing was copied yet.
          </span>
        )}
        {card !== undefined && (
          <span onClickCapture={copied}>
            <CopyButton class="button primary" text={() => card} done="Card copied">
              Copy the card
            </CopyButton>
          </span>
        )}
        <button type="button" class="button" onClick={close}>
          {isAsked.value && !isCopied.value ? 'Close without copying' : 'Close'}
        </button>
      </p>
    </Modal>
  )
}
