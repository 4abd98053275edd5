// In the place of `vscode-languageclient/node`, which runs only in VS Code: the names of it that
// are imported.
export class LanguageClient {}
export class RequestType {}
export const CloseAction = {}
export const ErrorAction = {}
export const State = {}
export const TransportKind = {}
