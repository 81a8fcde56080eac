package translate_test

// payload is one payload of a known type with every member it may have, and what must become of it.
type payload struct {
	typ  string
	data string
	want string // the message in data, in prototext
}

// payloads returns the payloads of contract section 3: every type, and between them every member, every alternative of
// the unions, and every outcome.
func payloads() []payload {
	const (
		trace     = `{"traceId":"0af7","spanId":"b7ad","traceFlags":1}`
		wantTrace = `{trace_id:"0af7" span_id:"b7ad" trace_flags:1}`
		fault     = `{"code":"C","message":"m","id":"err_1","hint":"h"}`
		wantFault = `{code:"C" message:"m" id:"err_1" hint:"h"}`
		ref       = `{"ref":"r","mediaType":"image/png","size":9007199254740993,"preview":"p","withheld":true}`
		wantRef   = `{ref:"r" media_type:"image/png" size:9007199254740993 preview:"p" withheld:true}`
	)
	return []payload{
		// 3.3 session
		{
			"session.started",
			`{"parent":{"sessionId":"s","callId":"c"},"predecessor":{"sessionId":"old"},"runtime":{"agentId":"a","agentName":"A","eveVersion":"1.0.1","build":{"deployedAt":"d","gitBranch":"main","gitSha":"0f"}},"trace":` + trace + `}`,
			`session_started:{parent:{session_id:"s" call_id:"c"} predecessor_session_id:"old" runtime:{agent_id:"a" agent_name:"A" eve_version:"1.0.1" build:{deployed_at:"d" git_branch:"main" git_sha:"0f"}} trace:` + wantTrace + `}`,
		},
		{"session.ended", `{"outcome":"completed","cause":{"hook":"h"}}`, `session_ended:{outcome:SESSION_OUTCOME_COMPLETED cause:{hook:"h"}}`},
		{"session.ended", `{"outcome":"failed","cause":{"policy":"p"},"error":` + fault + `}`, `session_ended:{outcome:SESSION_OUTCOME_FAILED cause:{policy:"p"} error:` + wantFault + `}`},
		// 3.4 delivery
		{
			"delivery.admitted",
			`{"deliveryId":"d","principal":{"id":"u","type":"user","issuer":"i"},"source":{"channel":"eve","scheduleId":"s","caller":{"sessionId":"w","callId":"c"},"control":"cancel","callback":"drive","hook":"h"},"clientContext":{"page":[1, 2]}}`,
			`delivery_admitted:{delivery_id:"d" principal:{id:"u" type:"user" issuer:"i"} source:{channel:"eve" schedule_id:"s" caller:{session_id:"w" call_id:"c"} control:"cancel" callback:"drive" hook:"h"} client_context_json:'{"page":[1, 2]}'}`,
		},
		{
			"delivery.consumed",
			`{"deliveryId":"d","turnId":"t","parts":[{"kind":"text","text":"hi"},{"kind":"file","mediaType":"text/csv","filename":"f","size":2048,"ref":"r","url":"u","unavailable":true},{"kind":"hologram", "text":{}}]}`,
			`delivery_consumed:{delivery_id:"d" turn_id:"t" parts:{kind:"text" text:"hi"} parts:{kind:"file" media_type:"text/csv" filename:"f" size:2048 ref:"r" url:"u" unavailable:true} parts:{kind:"hologram" part_json:'{"kind":"hologram", "text":{}}'}}`,
		},
		{"delivery.settled", `{"deliveryId":"d","outcome":"handled","turnId":"t","reason":"r"}`, `delivery_settled:{delivery_id:"d" outcome:DELIVERY_OUTCOME_HANDLED turn_id:"t" reason:"r"}`},
		{"delivery.settled", `{"deliveryId":"d","outcome":"awaiting-input"}`, `delivery_settled:{delivery_id:"d" outcome:DELIVERY_OUTCOME_AWAITING_INPUT}`},
		{"delivery.settled", `{"deliveryId":"d","outcome":"applied"}`, `delivery_settled:{delivery_id:"d" outcome:DELIVERY_OUTCOME_APPLIED}`},
		{"delivery.settled", `{"deliveryId":"d","outcome":"ignored"}`, `delivery_settled:{delivery_id:"d" outcome:DELIVERY_OUTCOME_IGNORED}`},
		{"delivery.settled", `{"deliveryId":"d","outcome":"refused"}`, `delivery_settled:{delivery_id:"d" outcome:DELIVERY_OUTCOME_REFUSED}`},
		{"delivery.settled", `{"deliveryId":"d","outcome":"failed"}`, `delivery_settled:{delivery_id:"d" outcome:DELIVERY_OUTCOME_FAILED}`},
		// 3.5 turn
		{"turn.started", `{"turnId":"t","cause":{"deliveryId":"d"},"follows":"t0","trace":` + trace + `}`, `turn_started:{turn_id:"t" cause:{delivery_id:"d"} follows_turn_id:"t0" trace:` + wantTrace + `}`},
		{"turn.paused", `{"turnId":"t","awaiting":[{"interactionId":"i"},{"callId":"c"},{"taskId":"k"}]}`, `turn_paused:{turn_id:"t" awaiting:{interaction_id:"i"} awaiting:{call_id:"c"} awaiting:{task_id:"k"}}`},
		{"turn.resumed", `{"turnId":"t","cause":{"taskId":"k"}}`, `turn_resumed:{turn_id:"t" cause:{task_id:"k"}}`},
		{"turn.settled", `{"turnId":"t","outcome":"completed","reply":["p0","p1"]}`, `turn_settled:{turn_id:"t" outcome:TURN_OUTCOME_COMPLETED reply_part_ids:"p0" reply_part_ids:"p1"}`},
		{"turn.settled", `{"turnId":"t","outcome":"failed","error":` + fault + `}`, `turn_settled:{turn_id:"t" outcome:TURN_OUTCOME_FAILED error:` + wantFault + `}`},
		{"turn.settled", `{"turnId":"t","outcome":"cancelled","cause":{"turnId":"t0"}}`, `turn_settled:{turn_id:"t" outcome:TURN_OUTCOME_CANCELLED cause:{turn_id:"t0"}}`},
		// 3.6 model
		{"model.requested", `{"runId":"r","owner":{"turnId":"t"}}`, `model_requested:{run_id:"r" owner:{turn_id:"t"}}`},
		{"model.requested", `{"runId":"r","owner":{"changeId":"x"}}`, `model_requested:{run_id:"r" owner:{change_id:"x"}}`},
		{"model.started", `{"runId":"r","modelId":"acme/brine-2"}`, `model_started:{run_id:"r" model_id:"acme/brine-2"}`},
		{"model.settled", `{"runId":"r","outcome":"completed","finishReason":"stop","generationId":"g"}`, `model_settled:{run_id:"r" outcome:MODEL_OUTCOME_COMPLETED finish_reason:"stop" generation_id:"g"}`},
		{"model.settled", `{"runId":"r","outcome":"failed","error":` + fault + `}`, `model_settled:{run_id:"r" outcome:MODEL_OUTCOME_FAILED error:` + wantFault + `}`},
		{"model.settled", `{"runId":"r","outcome":"interrupted"}`, `model_settled:{run_id:"r" outcome:MODEL_OUTCOME_INTERRUPTED}`},
		{"model.settled", `{"runId":"r","outcome":"abandoned"}`, `model_settled:{run_id:"r" outcome:MODEL_OUTCOME_ABANDONED}`},
		// 3.7 content
		{"content.delta", `{"partId":"p","kind":"text","delta":"High "}`, `content_delta:{part_id:"p" kind:"text" delta:"High "}`},
		{
			"content.completed",
			`{"partId":"p","runId":"r","kind":"text","value":"a\nb","valueRef":` + ref + `,"phase":"reply","interrupted":true,"mediaType":"text/plain","fallbackText":"f"}`,
			`content_completed:{part_id:"p" run_id:"r" kind:"text" text:"a\nb" value_json:'"a\\nb"' value_ref:` + wantRef + ` phase:"reply" interrupted:true media_type:"text/plain" fallback_text:"f"}`,
		},
		// 3.8 call
		{"call.input", `{"callId":"c","name":"n","delta":"{\"a\":"}`, `call_input:{call_id:"c" name:"n" delta:'{"a":'}`},
		{
			"call.requested",
			`{"callId":"c","owner":{"runId":"r"},"capability":{"kind":"tool","name":"n","title":"t"},"input":{"n":1.50},"inputRef":` + ref + `,"inputError":` + fault + `}`,
			`call_requested:{call_id:"c" owner:{run_id:"r"} capability:{kind:"tool" name:"n" title:"t"} input_json:'{"n":1.50}' input_ref:` + wantRef + ` input_error:` + wantFault + `}`,
		},
		{"call.requested", `{"callId":"c","owner":{"callId":"c0"}}`, `call_requested:{call_id:"c" owner:{call_id:"c0"}}`},
		{"call.started", `{"callId":"c","clearedBy":{"policy":"p"},"taskId":"k"}`, `call_started:{call_id:"c" cleared_by:{policy:"p"} task_id:"k"}`},
		{"call.started", `{"callId":"c","clearedBy":{"grant":{"interactionId":"i"}}}`, `call_started:{call_id:"c" cleared_by:{grant_interaction_id:"i"}}`},
		{"call.started", `{"callId":"c","clearedBy":{"interactionId":"i"}}`, `call_started:{call_id:"c" cleared_by:{interaction_id:"i"}}`},
		{"call.progress", `{"callId":"c","output":[true],"title":"t"}`, `call_progress:{call_id:"c" output_json:"[true]" title:"t"}`},
		{
			"call.settled",
			`{"callId":"c","outcome":"completed","output":"o","outputRef":` + ref + `,"outputOf":{"callId":"c0"},"error":` + fault + `,"reason":"r","cause":{"callId":"c1"},"title":"t"}`,
			`call_settled:{call_id:"c" outcome:CALL_OUTCOME_COMPLETED output_json:'"o"' output_ref:` + wantRef + ` output_of_call_id:"c0" error:` + wantFault + ` reason:"r" cause:{call_id:"c1"} title:"t"}`,
		},
		{"call.settled", `{"callId":"c","outcome":"failed"}`, `call_settled:{call_id:"c" outcome:CALL_OUTCOME_FAILED}`},
		{"call.settled", `{"callId":"c","outcome":"rejected"}`, `call_settled:{call_id:"c" outcome:CALL_OUTCOME_REJECTED}`},
		{"call.settled", `{"callId":"c","outcome":"interrupted"}`, `call_settled:{call_id:"c" outcome:CALL_OUTCOME_INTERRUPTED}`},
		{"call.settled", `{"callId":"c","outcome":"abandoned"}`, `call_settled:{call_id:"c" outcome:CALL_OUTCOME_ABANDONED}`},
		// 3.9 task
		{"task.started", `{"taskId":"k","startedBy":{"callId":"c"},"kind":"agent","name":"scout"}`, `task_started:{task_id:"k" started_by_call_id:"c" kind:"agent" name:"scout"}`},
		{"task.ended", `{"taskId":"k","outcome":"completed"}`, `task_ended:{task_id:"k" outcome:TASK_OUTCOME_COMPLETED}`},
		{"task.ended", `{"taskId":"k","outcome":"failed","error":` + fault + `}`, `task_ended:{task_id:"k" outcome:TASK_OUTCOME_FAILED error:` + wantFault + `}`},
		{"task.ended", `{"taskId":"k","outcome":"cancelled","reason":"r"}`, `task_ended:{task_id:"k" outcome:TASK_OUTCOME_CANCELLED reason:"r"}`},
		// 3.10 interaction
		{
			"interaction.opened",
			`{"interactionId":"i","subject":{"responseId":"x"},"request":{"kind":"approval","prompt":"p","title":"t","options":[{"id":"approve","label":"Approve","description":"d","style":"primary"},{"id":"cancel","label":"Cancel"}],"allowFreeform":true,"display":"select","link":{"url":"u","label":"l"},"signIn":{"name":"n","displayName":"N","url":"u","userCode":"c","expiresAt":"e","instructions":"i","callbackUrl":"b"}},"origin":{"sessionId":"s","interactionId":"j","call":{"callId":"c","name":"n","input":null}},"audience":{"principalIds":["u1","u2"]}}`,
			`interaction_opened:{interaction_id:"i" subject:{response_id:"x"} request:{kind:"approval" prompt:"p" title:"t" options:{id:"approve" label:"Approve" description:"d" style:"primary"} options:{id:"cancel" label:"Cancel"} allow_freeform:true display:"select" link:{url:"u" label:"l"} sign_in:{name:"n" display_name:"N" url:"u" user_code:"c" expires_at:"e" instructions:"i" callback_url:"b"}} origin:{session_id:"s" interaction_id:"j" call:{call_id:"c" name:"n" input_json:"null"}} audience:{principal_ids:"u1" principal_ids:"u2"}}`,
		},
		{"interaction.opened", `{"interactionId":"i","subject":{"taskId":"k"},"request":{"allowFreeform":false}}`, `interaction_opened:{interaction_id:"i" subject:{task_id:"k"} request:{allow_freeform:false}}`},
		{"interaction.opened", `{"interactionId":"i","subject":{"interactionId":"j"}}`, `interaction_opened:{interaction_id:"i" subject:{interaction_id:"j"}}`},
		{"interaction.settled", `{"interactionId":"i","outcome":"accepted","reason":"r","cause":{"responseId":"x"},"response":{"optionId":"approve"}}`, `interaction_settled:{interaction_id:"i" outcome:INTERACTION_OUTCOME_ACCEPTED reason:"r" cause:{response_id:"x"} response_json:'{"optionId":"approve"}'}`},
		{"interaction.settled", `{"interactionId":"i","outcome":"declined"}`, `interaction_settled:{interaction_id:"i" outcome:INTERACTION_OUTCOME_DECLINED}`},
		{"interaction.settled", `{"interactionId":"i","outcome":"invalid"}`, `interaction_settled:{interaction_id:"i" outcome:INTERACTION_OUTCOME_INVALID}`},
		{"interaction.settled", `{"interactionId":"i","outcome":"failed"}`, `interaction_settled:{interaction_id:"i" outcome:INTERACTION_OUTCOME_FAILED}`},
		{"interaction.settled", `{"interactionId":"i","outcome":"withdrawn"}`, `interaction_settled:{interaction_id:"i" outcome:INTERACTION_OUTCOME_WITHDRAWN}`},
		{"interaction.settled", `{"interactionId":"i","outcome":"interrupted"}`, `interaction_settled:{interaction_id:"i" outcome:INTERACTION_OUTCOME_INTERRUPTED}`},
		{"interaction.settled", `{"interactionId":"i","outcome":"abandoned"}`, `interaction_settled:{interaction_id:"i" outcome:INTERACTION_OUTCOME_ABANDONED}`},
		{"interaction.settled", `{"interactionId":"i","outcome":"expired","cause":{"interactionId":"j"}}`, `interaction_settled:{interaction_id:"i" outcome:INTERACTION_OUTCOME_EXPIRED cause:{interaction_id:"j"}}`},
		// 3.11 response
		{"response.submitted", `{"responseId":"x","interactionId":"i","deliveryId":"d","value":{"optionId":"o","text":"t"}}`, `response_submitted:{response_id:"x" interaction_id:"i" delivery_id:"d" value:{option_id:"o" text:"t"}}`},
		{"response.admitted", `{"responseId":"x"}`, `response_admitted:{response_id:"x"}`},
		{"response.settled", `{"responseId":"x","outcome":"applied","reason":"r"}`, `response_settled:{response_id:"x" outcome:RESPONSE_OUTCOME_APPLIED reason:"r"}`},
		{"response.settled", `{"responseId":"x","outcome":"refused"}`, `response_settled:{response_id:"x" outcome:RESPONSE_OUTCOME_REFUSED}`},
		{"response.settled", `{"responseId":"x","outcome":"failed"}`, `response_settled:{response_id:"x" outcome:RESPONSE_OUTCOME_FAILED}`},
		{"response.settled", `{"responseId":"x","outcome":"withdrawn"}`, `response_settled:{response_id:"x" outcome:RESPONSE_OUTCOME_WITHDRAWN}`},
		{"response.settled", `{"responseId":"x","outcome":"abandoned"}`, `response_settled:{response_id:"x" outcome:RESPONSE_OUTCOME_ABANDONED}`},
		{"response.settled", `{"responseId":"x","outcome":"expired"}`, `response_settled:{response_id:"x" outcome:RESPONSE_OUTCOME_EXPIRED}`},
		// 3.12 child
		{"child.opened", `{"sessionId":"s","owner":{"taskId":"k"},"name":"scout","stream":"/eve/v1/session/s/stream"}`, `child_opened:{session_id:"s" owner:{task_id:"k"} name:"scout" stream_path:"/eve/v1/session/s/stream"}`},
		// 3.13 context
		{"context.started", `{"changeId":"x","kind":"compaction","turnId":"t","cause":{"changeId":"y"},"trigger":{"inputTokens":190000}}`, `context_started:{change_id:"x" kind:"compaction" turn_id:"t" cause:{change_id:"y"} trigger:{input_tokens:190000}}`},
		{"context.settled", `{"changeId":"x","kind":"clear","outcome":"completed","selects":null}`, `context_settled:{change_id:"x" kind:"clear" outcome:CONTEXT_OUTCOME_COMPLETED selects:{emptied:true}}`},
		{"context.settled", `{"changeId":"x","kind":"compaction","outcome":"failed","error":` + fault + `}`, `context_settled:{change_id:"x" kind:"compaction" outcome:CONTEXT_OUTCOME_FAILED error:` + wantFault + `}`},
		{"context.settled", `{"changeId":"x","kind":"compaction","outcome":"cancelled","selects":{"turnId":"t"}}`, `context_settled:{change_id:"x" kind:"compaction" outcome:CONTEXT_OUTCOME_CANCELLED selects:{turn_id:"t"}}`},
		{"context.settled", `{"changeId":"x","kind":"compaction","outcome":"interrupted"}`, `context_settled:{change_id:"x" kind:"compaction" outcome:CONTEXT_OUTCOME_INTERRUPTED}`},
		// 3.14 usage
		{
			"usage.recorded",
			`{"owner":{"runId":"r"},"kind":"model","usage":{"inputTokens":812,"outputTokens":19,"cacheReadTokens":640,"cacheWriteTokens":7,"costUsd":0.0011}}`,
			`usage_recorded:{owner:{run_id:"r"} kind:"model" usage:{input_tokens:812 output_tokens:19 cache_read_tokens:640 cache_write_tokens:7 cost_usd:0.0011}}`,
		},
	}
}
