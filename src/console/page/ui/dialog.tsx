import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { ErrorNotice } from '../../../ui/page/error-notice.tsx'
import type { AdminError } from '../../client/admin-client.ts'
import { createActionKeys } from '../../model/action-key.ts'
import { useStore } from '../store.ts'
import type { DialogSpec, FieldValues } from './dialog-spec.ts'
import { Field } from './field.tsx'
import { Modal } from './modal.tsx'

/** The dialog of a change. */
export function ActionDialog({ spec }: { spec: DialogSpec }) {
  const { dialog, newKey } = useStore()
  const keys = useMemo(() => createActionKeys(newKey), [spec])
  const values = useSignal<FieldValues>(
    Object.fromEntries((spec.fields ?? []).map(({ name, value = '' }) => [name, value])),
  )
  const error = useSignal<AdminError | undefined>(undefined)
  const isBusy = useSignal(false)

  const submit = async (): Promise<void> => {
    if (isBusy.value) return
    const message = spec.check?.(values.value)
    if (message !== undefined) {
      error.value = { code: 'invalid-value', message }
      return
    }
    isBusy.value = true
    error.value = undefined
    const given = values.value
    const result = await spec.perform(given, keys.keyOf(given))
    isBusy.value = false
    if (!result.ok) {
      error.value = result.error
      return
    }
    keys.succeeded()
    if (dialog.value === spec) dialog.value = undefined
    spec.done(result.value, given)
  }

  return (
    <Modal titleId="dialog-title" onClose={() => !isBusy.value && (dialog.value = undefined)}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        <h2 id="dialog-title">{spec.title}</h2>
        {spec.text && <p class={spec.isDestructive ? 'dialog-text warning' : 'dialog-text'}>{spec.text}</p>}
        {(spec.fields ?? []).map((field) => (
          <Field
            key={field.name}
            spec={field}
            value={values.value[field.name] ?? ''}
            onChange={(value) => {
              values.value = { ...values.value, [field.name]: value }
            }}
          />
        ))}
        {error.value && <ErrorNotice error={error.value} />}
        <p class="dialog-buttons">
          <button type="button" class="button" disabled={isBusy.value} onClick={() => (dialog.value = undefined)}>
            {spec.isDestructive ? 'Keep it' : 'Close'}
          </button>
          <button type="submit" class={spec.isDestructive ? 'button danger' : 'button primary'} disabled={isBusy.value}>
            {isBusy.value ? 'Working…' : spec.submit}
          </button>
        </p>
      </form>
    </Modal>
  )
}
