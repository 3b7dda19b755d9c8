export type Json =
  | string
  | number
  | boolean
  | null
  | { [key: string]: Json | undefined }
  | Json[]

export type Database = {
  // Allows to automatically instantiate createClient with right options
  // instead of createClient<Database, { PostgrestVersion: 'XX' }>(URL, KEY)
  __InternalSupabase: {
    PostgrestVersion: "14.1"
  }
  public: {
    Tables: {
      budget_allocations: {
        Row: {
          amount: number
          category: string
          created_at: string
          id: string
          nonprofit_id: string
          updated_at: string
          updated_by: string | null
        }
        Insert: {
          amount: number
          category: string
          created_at?: string
          id?: string
          nonprofit_id: string
          updated_at?: string
          updated_by?: string | null
        }
        Update: {
          amount?: number
          category?: string
          created_at?: string
          id?: string
          nonprofit_id?: string
          updated_at?: string
          updated_by?: string | null
        }
        Relationships: [
          {
            foreignKeyName: "budget_allocations_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofit_directory"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "budget_allocations_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofits"
            referencedColumns: ["id"]
          },
        ]
      }
      budget_transactions: {
        Row: {
          amount: number
          category: string | null
          created_by: string | null
          date: string
          donation_id: string | null
          donor: string | null
          id: string
          nonprofit_id: string
          note: string | null
          payout_key: string | null
          request_id: string | null
          request_number: string | null
          type: string
        }
        Insert: {
          amount: number
          category?: string | null
          created_by?: string | null
          date?: string
          donation_id?: string | null
          donor?: string | null
          id?: string
          nonprofit_id: string
          note?: string | null
          payout_key?: string | null
          request_id?: string | null
          request_number?: string | null
          type: string
        }
        Update: {
          amount?: number
          category?: string | null
          created_by?: string | null
          date?: string
          donation_id?: string | null
          donor?: string | null
          id?: string
          nonprofit_id?: string
          note?: string | null
          payout_key?: string | null
          request_id?: string | null
          request_number?: string | null
          type?: string
        }
        Relationships: [
          {
            foreignKeyName: "budget_transactions_donation_id_fkey"
            columns: ["donation_id"]
            isOneToOne: true
            referencedRelation: "donations"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "budget_transactions_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofit_directory"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "budget_transactions_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofits"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "budget_transactions_request_id_fkey"
            columns: ["request_id"]
            isOneToOne: false
            referencedRelation: "approved_grants"
            referencedColumns: ["request_id"]
          },
          {
            foreignKeyName: "budget_transactions_request_id_fkey"
            columns: ["request_id"]
            isOneToOne: false
            referencedRelation: "my_requests"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "budget_transactions_request_id_fkey"
            columns: ["request_id"]
            isOneToOne: false
            referencedRelation: "requests"
            referencedColumns: ["id"]
          },
        ]
      }
      categories: {
        Row: {
          created_at: string
          description: string | null
          id: string
          is_active: boolean
          name: string
          nonprofit_id: string | null
        }
        Insert: {
          created_at?: string
          description?: string | null
          id?: string
          is_active?: boolean
          name: string
          nonprofit_id?: string | null
        }
        Update: {
          created_at?: string
          description?: string | null
          id?: string
          is_active?: boolean
          name?: string
          nonprofit_id?: string | null
        }
        Relationships: [
          {
            foreignKeyName: "categories_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofit_directory"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "categories_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofits"
            referencedColumns: ["id"]
          },
        ]
      }
      denial_reasons: {
        Row: {
          code: string
          label: string
          position: number
        }
        Insert: {
          code: string
          label: string
          position: number
        }
        Update: {
          code?: string
          label?: string
          position?: number
        }
        Relationships: []
      }
      donations: {
        Row: {
          amount: number
          dated: string
          donor_email: string | null
          donor_name: string
          donor_user_id: string | null
          id: string
          nonprofit_id: string
          note: string | null
          pledge_key: string | null
          pledged_at: string
          received_at: string | null
          recorded_by: string | null
          status: string
          waits: boolean
        }
        Insert: {
          amount: number
          dated?: never
          donor_email?: string | null
          donor_name?: string
          donor_user_id?: string | null
          id?: string
          nonprofit_id: string
          note?: string | null
          pledge_key?: string | null
          pledged_at?: string
          received_at?: string | null
          recorded_by?: string | null
          status?: string
          waits?: never
        }
        Update: {
          amount?: number
          dated?: never
          donor_email?: string | null
          donor_name?: string
          donor_user_id?: string | null
          id?: string
          nonprofit_id?: string
          note?: string | null
          pledge_key?: string | null
          pledged_at?: string
          received_at?: string | null
          recorded_by?: string | null
          status?: string
          waits?: never
        }
        Relationships: [
          {
            foreignKeyName: "donations_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofit_directory"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "donations_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofits"
            referencedColumns: ["id"]
          },
        ]
      }
      donor_message_recipients: {
        Row: {
          created_at: string
          donor_email: string
          donor_user_id: string | null
          id: string
          mailed_at: string | null
          message_id: string
          read_at: string | null
        }
        Insert: {
          created_at?: string
          donor_email: string
          donor_user_id?: string | null
          id?: string
          mailed_at?: string | null
          message_id: string
          read_at?: string | null
        }
        Update: {
          created_at?: string
          donor_email?: string
          donor_user_id?: string | null
          id?: string
          mailed_at?: string | null
          message_id?: string
          read_at?: string | null
        }
        Relationships: [
          {
            foreignKeyName: "donor_message_recipients_message_id_fkey"
            columns: ["message_id"]
            isOneToOne: false
            referencedRelation: "donor_messages"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "donor_message_recipients_message_id_fkey"
            columns: ["message_id"]
            isOneToOne: false
            referencedRelation: "my_donor_messages"
            referencedColumns: ["id"]
          },
        ]
      }
      donor_message_replies: {
        Row: {
          created_at: string
          donor_user_id: string | null
          from_name: string
          id: string
          message: string
          message_id: string
          nonprofit_id: string
          read_at: string | null
          reply_key: string | null
          subject: string
        }
        Insert: {
          created_at?: string
          donor_user_id?: string | null
          from_name: string
          id?: string
          message: string
          message_id: string
          nonprofit_id: string
          read_at?: string | null
          reply_key?: string | null
          subject: string
        }
        Update: {
          created_at?: string
          donor_user_id?: string | null
          from_name?: string
          id?: string
          message?: string
          message_id?: string
          nonprofit_id?: string
          read_at?: string | null
          reply_key?: string | null
          subject?: string
        }
        Relationships: [
          {
            foreignKeyName: "donor_message_replies_message_id_fkey"
            columns: ["message_id"]
            isOneToOne: false
            referencedRelation: "donor_messages"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "donor_message_replies_message_id_fkey"
            columns: ["message_id"]
            isOneToOne: false
            referencedRelation: "my_donor_messages"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "donor_message_replies_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofit_directory"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "donor_message_replies_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofits"
            referencedColumns: ["id"]
          },
        ]
      }
      donor_messages: {
        Row: {
          created_at: string
          id: string
          mailed_count: number
          message: string
          nonprofit_id: string
          recipient_count: number
          send_key: string | null
          sent_by: string | null
          subject: string
        }
        Insert: {
          created_at?: string
          id?: string
          mailed_count?: number
          message: string
          nonprofit_id: string
          recipient_count?: number
          send_key?: string | null
          sent_by?: string | null
          subject: string
        }
        Update: {
          created_at?: string
          id?: string
          mailed_count?: number
          message?: string
          nonprofit_id?: string
          recipient_count?: number
          send_key?: string | null
          sent_by?: string | null
          subject?: string
        }
        Relationships: [
          {
            foreignKeyName: "donor_messages_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofit_directory"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "donor_messages_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofits"
            referencedColumns: ["id"]
          },
        ]
      }
      nonprofit_settings: {
        Row: {
          nonprofit_id: string
          second_approval_above: number | null
          updated_at: string
        }
        Insert: {
          nonprofit_id: string
          second_approval_above?: number | null
          updated_at?: string
        }
        Update: {
          nonprofit_id?: string
          second_approval_above?: number | null
          updated_at?: string
        }
        Relationships: [
          {
            foreignKeyName: "nonprofit_settings_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: true
            referencedRelation: "nonprofit_directory"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "nonprofit_settings_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: true
            referencedRelation: "nonprofits"
            referencedColumns: ["id"]
          },
        ]
      }
      nonprofit_team_members: {
        Row: {
          created_at: string
          email: string
          full_name: string
          id: string
          invited_at: string | null
          is_active: boolean
          joined_at: string | null
          nonprofit_id: string
          role: string
          updated_at: string
          user_id: string
        }
        Insert: {
          created_at?: string
          email: string
          full_name?: string
          id?: string
          invited_at?: string | null
          is_active?: boolean
          joined_at?: string | null
          nonprofit_id: string
          role?: string
          updated_at?: string
          user_id?: string
        }
        Update: {
          created_at?: string
          email?: string
          full_name?: string
          id?: string
          invited_at?: string | null
          is_active?: boolean
          joined_at?: string | null
          nonprofit_id?: string
          role?: string
          updated_at?: string
          user_id?: string
        }
        Relationships: [
          {
            foreignKeyName: "nonprofit_team_members_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofit_directory"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "nonprofit_team_members_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofits"
            referencedColumns: ["id"]
          },
        ]
      }
      nonprofits: {
        Row: {
          admin_user_id: string | null
          average_response_time_days: number | null
          category: string | null
          closed_at: string | null
          created_at: string
          description: string | null
          email: string | null
          employee_count: number
          helps_with: string[]
          id: string
          legal_status: string
          location: string | null
          logo_path: string | null
          mission: string
          name: string
          phone: string | null
          registration_number: string
          service_area: string[]
          status: string
          updated_at: string
          website: string | null
        }
        Insert: {
          admin_user_id?: string | null
          average_response_time_days?: number | null
          category?: string | null
          closed_at?: string | null
          created_at?: string
          description?: string | null
          email?: string | null
          employee_count: number
          helps_with?: string[]
          id?: string
          legal_status: string
          location?: string | null
          logo_path?: string | null
          mission: string
          name: string
          phone?: string | null
          registration_number: string
          service_area?: string[]
          status?: string
          updated_at?: string
          website?: string | null
        }
        Update: {
          admin_user_id?: string | null
          average_response_time_days?: number | null
          category?: string | null
          closed_at?: string | null
          created_at?: string
          description?: string | null
          email?: string | null
          employee_count?: number
          helps_with?: string[]
          id?: string
          legal_status?: string
          location?: string | null
          logo_path?: string | null
          mission?: string
          name?: string
          phone?: string | null
          registration_number?: string
          service_area?: string[]
          status?: string
          updated_at?: string
          website?: string | null
        }
        Relationships: []
      }
      notifications: {
        Row: {
          code: string | null
          date: string
          donor_message_id: string | null
          id: string
          link: string | null
          message: string
          params: Json | null
          read: boolean
          request_id: string | null
          title: string
          type: string
          user_id: string
        }
        Insert: {
          code?: string | null
          date?: string
          donor_message_id?: string | null
          id?: string
          link?: string | null
          message: string
          params?: Json | null
          read?: boolean
          request_id?: string | null
          title: string
          type?: string
          user_id: string
        }
        Update: {
          code?: string | null
          date?: string
          donor_message_id?: string | null
          id?: string
          link?: string | null
          message?: string
          params?: Json | null
          read?: boolean
          request_id?: string | null
          title?: string
          type?: string
          user_id?: string
        }
        Relationships: [
          {
            foreignKeyName: "notifications_donor_message"
            columns: ["donor_message_id"]
            isOneToOne: false
            referencedRelation: "donor_messages"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "notifications_donor_message"
            columns: ["donor_message_id"]
            isOneToOne: false
            referencedRelation: "my_donor_messages"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "notifications_request_id_fkey"
            columns: ["request_id"]
            isOneToOne: false
            referencedRelation: "approved_grants"
            referencedColumns: ["request_id"]
          },
          {
            foreignKeyName: "notifications_request_id_fkey"
            columns: ["request_id"]
            isOneToOne: false
            referencedRelation: "my_requests"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "notifications_request_id_fkey"
            columns: ["request_id"]
            isOneToOne: false
            referencedRelation: "requests"
            referencedColumns: ["id"]
          },
        ]
      }
      profile_identities: {
        Row: {
          id_number: string
          id_type: string
          updated_at: string
          user_id: string
        }
        Insert: {
          id_number: string
          id_type: string
          updated_at?: string
          user_id: string
        }
        Update: {
          id_number?: string
          id_type?: string
          updated_at?: string
          user_id?: string
        }
        Relationships: []
      }
      profiles: {
        Row: {
          bio: string | null
          birthday: string | null
          country: string | null
          created_at: string
          email: string | null
          first_name: string | null
          full_name: string | null
          id: string
          language: string | null
          last_name: string | null
          middle_name: string | null
          phone: string | null
          photo_path: string | null
          selected_nonprofit_id: string | null
          sms_consent: boolean
          sms_stopped_at: string | null
          updated_at: string
          age: number | null
        }
        Insert: {
          bio?: string | null
          birthday?: string | null
          country?: string | null
          created_at?: string
          email?: string | null
          first_name?: string | null
          full_name?: string | null
          id: string
          language?: string | null
          last_name?: string | null
          middle_name?: string | null
          phone?: string | null
          photo_path?: string | null
          selected_nonprofit_id?: string | null
          sms_consent?: boolean
          sms_stopped_at?: string | null
          updated_at?: string
        }
        Update: {
          bio?: string | null
          birthday?: string | null
          country?: string | null
          created_at?: string
          email?: string | null
          first_name?: string | null
          full_name?: string | null
          id?: string
          language?: string | null
          last_name?: string | null
          middle_name?: string | null
          phone?: string | null
          photo_path?: string | null
          selected_nonprofit_id?: string | null
          sms_consent?: boolean
          sms_stopped_at?: string | null
          updated_at?: string
        }
        Relationships: [
          {
            foreignKeyName: "profiles_selected_nonprofit"
            columns: ["selected_nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofit_directory"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "profiles_selected_nonprofit"
            columns: ["selected_nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofits"
            referencedColumns: ["id"]
          },
        ]
      }
      request_documents: {
        Row: {
          created_at: string
          id: string
          kind: string
          mime_type: string
          name: string
          path: string
          request_id: string
          size_bytes: number
          uploaded_by: string | null
        }
        Insert: {
          created_at?: string
          id?: string
          kind?: string
          mime_type: string
          name: string
          path: string
          request_id: string
          size_bytes: number
          uploaded_by?: string | null
        }
        Update: {
          created_at?: string
          id?: string
          kind?: string
          mime_type?: string
          name?: string
          path?: string
          request_id?: string
          size_bytes?: number
          uploaded_by?: string | null
        }
        Relationships: [
          {
            foreignKeyName: "request_documents_request_id_fkey"
            columns: ["request_id"]
            isOneToOne: false
            referencedRelation: "approved_grants"
            referencedColumns: ["request_id"]
          },
          {
            foreignKeyName: "request_documents_request_id_fkey"
            columns: ["request_id"]
            isOneToOne: false
            referencedRelation: "my_requests"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "request_documents_request_id_fkey"
            columns: ["request_id"]
            isOneToOne: false
            referencedRelation: "requests"
            referencedColumns: ["id"]
          },
        ]
      }
      request_events: {
        Row: {
          actor: string
          actor_user_id: string | null
          amount: number | null
          created_at: string
          for_requester: boolean
          id: string
          nonprofit_id: string | null
          note: string | null
          request_id: string
          type: string
        }
        Insert: {
          actor: string
          actor_user_id?: string | null
          amount?: number | null
          created_at?: string
          for_requester?: boolean
          id?: string
          nonprofit_id?: string | null
          note?: string | null
          request_id: string
          type: string
        }
        Update: {
          actor?: string
          actor_user_id?: string | null
          amount?: number | null
          created_at?: string
          for_requester?: boolean
          id?: string
          nonprofit_id?: string | null
          note?: string | null
          request_id?: string
          type?: string
        }
        Relationships: [
          {
            foreignKeyName: "request_events_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofit_directory"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "request_events_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofits"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "request_events_request_id_fkey"
            columns: ["request_id"]
            isOneToOne: false
            referencedRelation: "approved_grants"
            referencedColumns: ["request_id"]
          },
          {
            foreignKeyName: "request_events_request_id_fkey"
            columns: ["request_id"]
            isOneToOne: false
            referencedRelation: "my_requests"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "request_events_request_id_fkey"
            columns: ["request_id"]
            isOneToOne: false
            referencedRelation: "requests"
            referencedColumns: ["id"]
          },
        ]
      }
      request_nonprofits: {
        Row: {
          acted_at: string | null
          acted_by: string | null
          amount: number | null
          assigned_to: string | null
          category: string | null
          needs_more_proof: boolean
          nonprofit_id: string
          opened_at: string | null
          opened_by: string | null
          reason: string | null
          reason_code: string | null
          request_id: string
          search_text: string
          state: string
          status: string | null
          submitted_at: string
        }
        Insert: {
          acted_at?: string | null
          acted_by?: string | null
          amount?: number | null
          assigned_to?: string | null
          category?: string | null
          needs_more_proof?: boolean
          nonprofit_id: string
          opened_at?: string | null
          opened_by?: string | null
          reason?: string | null
          reason_code?: string | null
          request_id: string
          search_text?: string
          state?: string
          status?: string | null
          submitted_at?: string
        }
        Update: {
          acted_at?: string | null
          acted_by?: string | null
          amount?: number | null
          assigned_to?: string | null
          category?: string | null
          needs_more_proof?: boolean
          nonprofit_id?: string
          opened_at?: string | null
          opened_by?: string | null
          reason?: string | null
          reason_code?: string | null
          request_id?: string
          search_text?: string
          state?: string
          status?: string | null
          submitted_at?: string
        }
        Relationships: [
          {
            foreignKeyName: "request_nonprofits_assigned_to_fkey"
            columns: ["assigned_to"]
            isOneToOne: false
            referencedRelation: "nonprofit_team_members"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "request_nonprofits_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofit_directory"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "request_nonprofits_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofits"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "request_nonprofits_reason_code_fkey"
            columns: ["reason_code"]
            isOneToOne: false
            referencedRelation: "denial_reasons"
            referencedColumns: ["code"]
          },
          {
            foreignKeyName: "request_nonprofits_request_id_fkey"
            columns: ["request_id"]
            isOneToOne: false
            referencedRelation: "approved_grants"
            referencedColumns: ["request_id"]
          },
          {
            foreignKeyName: "request_nonprofits_request_id_fkey"
            columns: ["request_id"]
            isOneToOne: false
            referencedRelation: "my_requests"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "request_nonprofits_request_id_fkey"
            columns: ["request_id"]
            isOneToOne: false
            referencedRelation: "requests"
            referencedColumns: ["id"]
          },
        ]
      }
      requests: {
        Row: {
          address: string | null
          amount: string
          amount_approved: number | null
          amount_paid: number
          amount_requested: number | null
          category: string | null
          category_id: string | null
          city: string | null
          claimed_by: string | null
          contact_consent: boolean
          created_at: string
          decided_at: string | null
          denial_reason: string | null
          denial_reason_code: string | null
          description: string
          email: string | null
          first_name: string | null
          form: string
          id: string
          language: string | null
          last_name: string | null
          needs_more_proof: boolean
          nonprofits: string[]
          pending_notes: string | null
          phone: string | null
          postal_code: string | null
          preferred_contact: string | null
          request_number: string | null
          resubmitted_from: string | null
          review_started_at: string | null
          sms_consent: boolean
          state: string | null
          status: string
          step: number
          submit_key: string | null
          submitted_at: string | null
          title: string | null
          updated_at: string
          urgency: string | null
          user_id: string | null
          denialReason: string | null
          documents: Json | null
          needsMoreProof: boolean | null
          pendingNotes: string | null
        }
        Insert: {
          address?: string | null
          amount?: string
          amount_approved?: number | null
          amount_paid?: number
          amount_requested?: number | null
          category?: string | null
          category_id?: string | null
          city?: string | null
          claimed_by?: string | null
          contact_consent?: boolean
          created_at?: string
          decided_at?: string | null
          denial_reason?: string | null
          denial_reason_code?: string | null
          description?: string
          email?: string | null
          first_name?: string | null
          form?: string
          id?: string
          language?: string | null
          last_name?: string | null
          needs_more_proof?: boolean
          nonprofits?: string[]
          pending_notes?: string | null
          phone?: string | null
          postal_code?: string | null
          preferred_contact?: string | null
          request_number?: string | null
          resubmitted_from?: string | null
          review_started_at?: string | null
          sms_consent?: boolean
          state?: string | null
          status?: string
          step?: number
          submit_key?: string | null
          submitted_at?: string | null
          title?: string | null
          updated_at?: string
          urgency?: string | null
          user_id?: string | null
        }
        Update: {
          address?: string | null
          amount?: string
          amount_approved?: number | null
          amount_paid?: number
          amount_requested?: number | null
          category?: string | null
          category_id?: string | null
          city?: string | null
          claimed_by?: string | null
          contact_consent?: boolean
          created_at?: string
          decided_at?: string | null
          denial_reason?: string | null
          denial_reason_code?: string | null
          description?: string
          email?: string | null
          first_name?: string | null
          form?: string
          id?: string
          language?: string | null
          last_name?: string | null
          needs_more_proof?: boolean
          nonprofits?: string[]
          pending_notes?: string | null
          phone?: string | null
          postal_code?: string | null
          preferred_contact?: string | null
          request_number?: string | null
          resubmitted_from?: string | null
          review_started_at?: string | null
          sms_consent?: boolean
          state?: string | null
          status?: string
          step?: number
          submit_key?: string | null
          submitted_at?: string | null
          title?: string | null
          updated_at?: string
          urgency?: string | null
          user_id?: string | null
        }
        Relationships: [
          {
            foreignKeyName: "requests_category_id_fkey"
            columns: ["category_id"]
            isOneToOne: false
            referencedRelation: "categories"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "requests_claimed_by_fkey"
            columns: ["claimed_by"]
            isOneToOne: false
            referencedRelation: "nonprofit_directory"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "requests_claimed_by_fkey"
            columns: ["claimed_by"]
            isOneToOne: false
            referencedRelation: "nonprofits"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "requests_denial_reason_code_fkey"
            columns: ["denial_reason_code"]
            isOneToOne: false
            referencedRelation: "denial_reasons"
            referencedColumns: ["code"]
          },
          {
            foreignKeyName: "requests_resubmitted_from_fkey"
            columns: ["resubmitted_from"]
            isOneToOne: false
            referencedRelation: "approved_grants"
            referencedColumns: ["request_id"]
          },
          {
            foreignKeyName: "requests_resubmitted_from_fkey"
            columns: ["resubmitted_from"]
            isOneToOne: false
            referencedRelation: "my_requests"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "requests_resubmitted_from_fkey"
            columns: ["resubmitted_from"]
            isOneToOne: false
            referencedRelation: "requests"
            referencedColumns: ["id"]
          },
        ]
      }
      saved_replies: {
        Row: {
          body: string
          created_at: string
          id: string
          kind: string
          nonprofit_id: string
          title: string
          updated_at: string
        }
        Insert: {
          body: string
          created_at?: string
          id?: string
          kind: string
          nonprofit_id: string
          title: string
          updated_at?: string
        }
        Update: {
          body?: string
          created_at?: string
          id?: string
          kind?: string
          nonprofit_id?: string
          title?: string
          updated_at?: string
        }
        Relationships: [
          {
            foreignKeyName: "saved_replies_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofit_directory"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "saved_replies_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofits"
            referencedColumns: ["id"]
          },
        ]
      }
      user_roles: {
        Row: {
          created_at: string
          nonprofit_role: string | null
          role: string
          updated_at: string
          user_id: string
        }
        Insert: {
          created_at?: string
          nonprofit_role?: string | null
          role?: string
          updated_at?: string
          user_id: string
        }
        Update: {
          created_at?: string
          nonprofit_role?: string | null
          role?: string
          updated_at?: string
          user_id?: string
        }
        Relationships: []
      }
    }
    Views: {
      approved_grants: {
        Row: {
          approved_at: string | null
          category: string | null
          granted: number | null
          nonprofit_id: string | null
          outstanding: number | null
          paid: number | null
          request_id: string | null
          request_number: string | null
          requester_name: string | null
        }
        Insert: {
          approved_at?: string | null
          category?: string | null
          granted?: number | null
          nonprofit_id?: string | null
          outstanding?: never
          paid?: never
          request_id?: string | null
          request_number?: string | null
          requester_name?: never
        }
        Update: {
          approved_at?: string | null
          category?: string | null
          granted?: number | null
          nonprofit_id?: string | null
          outstanding?: never
          paid?: never
          request_id?: string | null
          request_number?: string | null
          requester_name?: never
        }
        Relationships: [
          {
            foreignKeyName: "requests_claimed_by_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofit_directory"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "requests_claimed_by_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofits"
            referencedColumns: ["id"]
          },
        ]
      }
      donor_inbox: {
        Row: {
          date: string | null
          from: string | null
          id: string | null
          message: string | null
          message_id: string | null
          nonprofit_id: string | null
          preview: string | null
          subject: string | null
          unread: boolean | null
        }
        Insert: {
          date?: string | null
          from?: string | null
          id?: string | null
          message?: string | null
          message_id?: string | null
          nonprofit_id?: string | null
          preview?: never
          subject?: string | null
          unread?: never
        }
        Update: {
          date?: string | null
          from?: string | null
          id?: string | null
          message?: string | null
          message_id?: string | null
          nonprofit_id?: string | null
          preview?: never
          subject?: string | null
          unread?: never
        }
        Relationships: [
          {
            foreignKeyName: "donor_message_replies_message_id_fkey"
            columns: ["message_id"]
            isOneToOne: false
            referencedRelation: "donor_messages"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "donor_message_replies_message_id_fkey"
            columns: ["message_id"]
            isOneToOne: false
            referencedRelation: "my_donor_messages"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "donor_message_replies_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofit_directory"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "donor_message_replies_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofits"
            referencedColumns: ["id"]
          },
        ]
      }
      incoming_requests: {
        Row: {
          amount: string | null
          amount_approved: number | null
          amount_requested: number | null
          assigned_to: string | null
          category: string | null
          category_id: string | null
          needs_more_proof: boolean | null
          nonprofit_id: string | null
          opened: boolean | null
          part: string | null
          request_id: string | null
          request_number: string | null
          requester_name: string | null
          search_text: string | null
          status: string | null
          submitted_at: string | null
          updated_at: string | null
          waiting_days: number | null
        }
        Relationships: []
      }
      my_donor_messages: {
        Row: {
          date: string | null
          id: string | null
          message: string | null
          nonprofit_id: string | null
          nonprofit_name: string | null
          replies: Json | null
          subject: string | null
          unread: boolean | null
        }
        Relationships: [
          {
            foreignKeyName: "donor_messages_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofit_directory"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "donor_messages_nonprofit_id_fkey"
            columns: ["nonprofit_id"]
            isOneToOne: false
            referencedRelation: "nonprofits"
            referencedColumns: ["id"]
          },
        ]
      }
      my_requests: {
        Row: {
          amount: string | null
          amount_approved: number | null
          amount_requested: number | null
          category: string | null
          category_id: string | null
          claimed_by_name: string | null
          decided_at: string | null
          denial_reason: string | null
          description: string | null
          id: string | null
          needs_more_proof: boolean | null
          nonprofit_names: string[] | null
          nonprofits: string[] | null
          pending_notes: string | null
          request_number: string | null
          search_text: string | null
          status: string | null
          submitted_at: string | null
          title: string | null
          updated_at: string | null
        }
        Insert: {
          amount?: string | null
          amount_approved?: number | null
          amount_requested?: number | null
          category?: string | null
          category_id?: string | null
          claimed_by_name?: never
          decided_at?: string | null
          denial_reason?: string | null
          description?: string | null
          id?: string | null
          needs_more_proof?: boolean | null
          nonprofit_names?: never
          nonprofits?: string[] | null
          pending_notes?: string | null
          request_number?: string | null
          search_text?: never
          status?: string | null
          submitted_at?: string | null
          title?: string | null
          updated_at?: string | null
        }
        Update: {
          amount?: string | null
          amount_approved?: number | null
          amount_requested?: number | null
          category?: string | null
          category_id?: string | null
          claimed_by_name?: never
          decided_at?: string | null
          denial_reason?: string | null
          description?: string | null
          id?: string | null
          needs_more_proof?: boolean | null
          nonprofit_names?: never
          nonprofits?: string[] | null
          pending_notes?: string | null
          request_number?: string | null
          search_text?: never
          status?: string | null
          submitted_at?: string | null
          title?: string | null
          updated_at?: string | null
        }
        Relationships: [
          {
            foreignKeyName: "requests_category_id_fkey"
            columns: ["category_id"]
            isOneToOne: false
            referencedRelation: "categories"
            referencedColumns: ["id"]
          },
        ]
      }
      nonprofit_directory: {
        Row: {
          average_response_time_days: number | null
          category: string | null
          description: string | null
          email: string | null
          helps_with: string[] | null
          id: string | null
          location: string | null
          logo_path: string | null
          mission: string | null
          name: string | null
          phone: string | null
          search_text: string | null
          service_area: string[] | null
          website: string | null
        }
        Insert: {
          average_response_time_days?: number | null
          category?: string | null
          description?: string | null
          email?: string | null
          helps_with?: string[] | null
          id?: string | null
          location?: string | null
          logo_path?: string | null
          mission?: string | null
          name?: string | null
          phone?: string | null
          search_text?: never
          service_area?: string[] | null
          website?: string | null
        }
        Update: {
          average_response_time_days?: number | null
          category?: string | null
          description?: string | null
          email?: string | null
          helps_with?: string[] | null
          id?: string | null
          location?: string | null
          logo_path?: string | null
          mission?: string | null
          name?: string | null
          phone?: string | null
          search_text?: never
          service_area?: string[] | null
          website?: string | null
        }
        Relationships: []
      }
    }
    Functions: {
      accept_team_invitation: { Args: { token: string }; Returns: Json }
      active_donor_count: { Args: { nonprofit_id: string }; Returns: number }
      age: {
        Args: { p: Database["public"]["Tables"]["profiles"]["Row"] }
        Returns: number
      }
      answer_request_info: {
        Args: { access?: string; id: string; message?: string; slots?: Json }
        Returns: Json
      }
      approve_request: {
        Args: {
          accept_over_budget?: boolean
          amount: number
          nonprofit_id: string
          request_id: string
        }
        Returns: Json
      }
      assign_request: {
        Args: { member_id?: string; nonprofit_id: string; request_id: string }
        Returns: Json
      }
      cancel_donation: { Args: { donation_id: string }; Returns: Json }
      check_address_code: {
        Args: { code: string; email: string }
        Returns: Json
      }
      check_request_code: {
        Args: { code: string; number: string }
        Returns: Json
      }
      claim_guest_requests: { Args: Record<PropertyKey, never>; Returns: Json }
      close_account: { Args: { email: string }; Returns: Json }
      close_organization: { Args: { nonprofit_id: string }; Returns: Json }
      confirm_newsletter: { Args: { token: string }; Returns: Json }
      continue_donor_message: { Args: { message_id: string }; Returns: Json }
      correct_request: {
        Args: { access?: string; id: string; input: Json }
        Returns: Json
      }
      create_guest_upload_slot: {
        Args: {
          key: string
          mime_type: string
          name: string
          size_bytes: number
        }
        Returns: Json
      }
      create_organization: {
        Args: { input: Json }
        Returns: {
          admin_user_id: string | null
          average_response_time_days: number | null
          category: string | null
          closed_at: string | null
          created_at: string
          description: string | null
          email: string | null
          employee_count: number
          helps_with: string[]
          id: string
          legal_status: string
          location: string | null
          logo_path: string | null
          mission: string
          name: string
          phone: string | null
          registration_number: string
          service_area: string[]
          status: string
          updated_at: string
          website: string | null
        }
        SetofOptions: {
          from: "*"
          to: "nonprofits"
          isOneToOne: true
          isSetofReturn: false
        }
      }
      denialReason: {
        Args: { r: Database["public"]["Tables"]["requests"]["Row"] }
        Returns: string
      }
      deny_request: {
        Args: {
          nonprofit_id: string
          reason: string
          reason_code?: string
          request_id: string
        }
        Returns: Json
      }
      documents: {
        Args: { r: Database["public"]["Tables"]["requests"]["Row"] }
        Returns: Json
      }
      donor_dashboard: { Args: Record<PropertyKey, never>; Returns: Json }
      end_request_access: { Args: { access: string }; Returns: boolean }
      grants_page: {
        Args: {
          nonprofit_id: string
          page?: number
          page_size?: number
          search?: string
        }
        Returns: Json
      }
      incoming_page: {
        Args: {
          descending?: boolean
          mine?: boolean
          nonprofit_id: string
          page?: number
          page_size?: number
          search?: string
          sort?: string
          status?: string
        }
        Returns: Json
      }
      incoming_request_counts: { Args: { nonprofit_id: string }; Returns: Json }
      keep_language: { Args: { language: string }; Returns: string }
      leave_organization: { Args: { nonprofit_id: string }; Returns: Json }
      mark_all_notifications_read: {
        Args: Record<PropertyKey, never>
        Returns: number
      }
      mark_donor_message_read: {
        Args: { message_id: string }
        Returns: boolean
      }
      mark_request_opened: {
        Args: { nonprofit_id: string; request_id: string }
        Returns: boolean
      }
      me: { Args: Record<PropertyKey, never>; Returns: Json }
      my_data: { Args: Record<PropertyKey, never>; Returns: Json }
      my_profile: { Args: Record<PropertyKey, never>; Returns: Json }
      needsMoreProof: {
        Args: { r: Database["public"]["Tables"]["requests"]["Row"] }
        Returns: boolean
      }
      nonprofit_budget: { Args: { nonprofit_id: string }; Returns: Json }
      nonprofit_dashboard: { Args: { nonprofit_id: string }; Returns: Json }
      nonprofits_for: {
        Args: { category_id?: string; place?: string }
        Returns: {
          average_response_time_days: number
          category: string
          helps: boolean
          id: string
          location: string
          mission: string
          name: string
          near: boolean
          search_text: string
        }[]
      }
      open_request: {
        Args: { nonprofit_id: string; request_id: string }
        Returns: Json
      }
      pendingNotes: {
        Args: { r: Database["public"]["Tables"]["requests"]["Row"] }
        Returns: string
      }
      pledge_donation: { Args: { input: Json }; Returns: Json }
      receive_donation: { Args: { donation_id: string }; Returns: Json }
      record_donation: {
        Args: {
          amount: number
          donor_email?: string
          donor_name: string
          key?: string
          nonprofit_id: string
          received_at?: string
        }
        Returns: Json
      }
      record_payout: {
        Args: {
          amount: number
          key?: string
          note?: string
          request_id: string
        }
        Returns: Json
      }
      remove_guest_upload_slot: { Args: { id: string }; Returns: boolean }
      reply_to_donor_message: {
        Args: { key?: string; message: string; message_id: string }
        Returns: Json
      }
      request_detail: { Args: { access?: string; id: string }; Returns: Json }
      request_more_info: {
        Args: {
          items?: string[]
          nonprofit_id: string
          notes?: string
          request_id: string
        }
        Returns: Json
      }
      request_status: { Args: { number: string }; Returns: Json }
      requester_dashboard: { Args: Record<PropertyKey, never>; Returns: Json }
      resend_team_invitation: { Args: { member_id: string }; Returns: Json }
      resubmit_request: { Args: { id: string }; Returns: Json }
      save_draft: { Args: { input: Json }; Returns: Json }
      save_organization: {
        Args: { changes: Json; nonprofit_id: string; seen: Json }
        Returns: Json
      }
      save_profile: { Args: { input: Json }; Returns: Json }
      select_nonprofit: { Args: { nonprofit_id: string }; Returns: Json }
      send_address_code: { Args: { email?: string }; Returns: Json }
      send_donor_message: {
        Args: {
          key?: string
          message: string
          nonprofit_id: string
          subject: string
        }
        Returns: Json
      }
      send_request_code: {
        Args: { channel?: string; number: string }
        Returns: Json
      }
      set_budget_allocation: {
        Args: { amount: number; category: string; nonprofit_id: string }
        Returns: Json
      }
      set_second_approval: {
        Args: { above?: number; nonprofit_id: string }
        Returns: Json
      }
      staff_request: {
        Args: { nonprofit_id: string; request_id: string }
        Returns: Json
      }
      submit_request: { Args: { input: Json }; Returns: Json }
      subscribe_newsletter: { Args: { email: string }; Returns: Json }
      sweep_guest_files: { Args: Record<PropertyKey, never>; Returns: string[] }
      team_invitation: { Args: { token: string }; Returns: Json }
      unsubscribe: { Args: { token: string }; Returns: Json }
      withdraw_request: { Args: { access?: string; id: string }; Returns: Json }
    }
    Enums: {
      [_ in never]: never
    }
    CompositeTypes: {
      [_ in never]: never
    }
  }
}

type DatabaseWithoutInternals = Omit<Database, "__InternalSupabase">

type DefaultSchema = DatabaseWithoutInternals[Extract<keyof Database, "public">]

export type Tables<
  DefaultSchemaTableNameOrOptions extends
    | keyof (DefaultSchema["Tables"] & DefaultSchema["Views"])
    | { schema: keyof DatabaseWithoutInternals },
  TableName extends (DefaultSchemaTableNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals
  }
    ? keyof (DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Tables"] &
        DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Views"])
    : never) = never,
> = DefaultSchemaTableNameOrOptions extends {
  schema: keyof DatabaseWithoutInternals
}
  ? (DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Tables"] &
      DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Views"])[TableName] extends {
      Row: infer R
    }
    ? R
    : never
  : DefaultSchemaTableNameOrOptions extends keyof (DefaultSchema["Tables"] &
        DefaultSchema["Views"])
    ? (DefaultSchema["Tables"] &
        DefaultSchema["Views"])[DefaultSchemaTableNameOrOptions] extends {
        Row: infer R
      }
      ? R
      : never
    : never

export type TablesInsert<
  DefaultSchemaTableNameOrOptions extends
    | keyof DefaultSchema["Tables"]
    | { schema: keyof DatabaseWithoutInternals },
  TableName extends (DefaultSchemaTableNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals
  }
    ? keyof DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Tables"]
    : never) = never,
> = DefaultSchemaTableNameOrOptions extends {
  schema: keyof DatabaseWithoutInternals
}
  ? DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Tables"][TableName] extends {
      Insert: infer I
    }
    ? I
    : never
  : DefaultSchemaTableNameOrOptions extends keyof DefaultSchema["Tables"]
    ? DefaultSchema["Tables"][DefaultSchemaTableNameOrOptions] extends {
        Insert: infer I
      }
      ? I
      : never
    : never

export type TablesUpdate<
  DefaultSchemaTableNameOrOptions extends
    | keyof DefaultSchema["Tables"]
    | { schema: keyof DatabaseWithoutInternals },
  TableName extends (DefaultSchemaTableNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals
  }
    ? keyof DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Tables"]
    : never) = never,
> = DefaultSchemaTableNameOrOptions extends {
  schema: keyof DatabaseWithoutInternals
}
  ? DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Tables"][TableName] extends {
      Update: infer U
    }
    ? U
    : never
  : DefaultSchemaTableNameOrOptions extends keyof DefaultSchema["Tables"]
    ? DefaultSchema["Tables"][DefaultSchemaTableNameOrOptions] extends {
        Update: infer U
      }
      ? U
      : never
    : never

export type Enums<
  DefaultSchemaEnumNameOrOptions extends
    | keyof DefaultSchema["Enums"]
    | { schema: keyof DatabaseWithoutInternals },
  EnumName extends (DefaultSchemaEnumNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals
  }
    ? keyof DatabaseWithoutInternals[DefaultSchemaEnumNameOrOptions["schema"]]["Enums"]
    : never) = never,
> = DefaultSchemaEnumNameOrOptions extends {
  schema: keyof DatabaseWithoutInternals
}
  ? DatabaseWithoutInternals[DefaultSchemaEnumNameOrOptions["schema"]]["Enums"][EnumName]
  : DefaultSchemaEnumNameOrOptions extends keyof DefaultSchema["Enums"]
    ? DefaultSchema["Enums"][DefaultSchemaEnumNameOrOptions]
    : never

export type CompositeTypes<
  PublicCompositeTypeNameOrOptions extends
    | keyof DefaultSchema["CompositeTypes"]
    | { schema: keyof DatabaseWithoutInternals },
  CompositeTypeName extends (PublicCompositeTypeNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals
  }
    ? keyof DatabaseWithoutInternals[PublicCompositeTypeNameOrOptions["schema"]]["CompositeTypes"]
    : never) = never,
> = PublicCompositeTypeNameOrOptions extends {
  schema: keyof DatabaseWithoutInternals
}
  ? DatabaseWithoutInternals[PublicCompositeTypeNameOrOptions["schema"]]["CompositeTypes"][CompositeTypeName]
  : PublicCompositeTypeNameOrOptions extends keyof DefaultSchema["CompositeTypes"]
    ? DefaultSchema["CompositeTypes"][PublicCompositeTypeNameOrOptions]
    : never

export const Constants = {
  public: {
    Enums: {},
  },
} as const
